"""The page of `keydyn study goodness-of-fit`."""

from __future__ import annotations

from keydyn.lab.frame.cells import has_number, listed, named, number, percent
from keydyn.lab.frame.markdown_rows import Row
from keydyn.lab.frame.page import ResultsPage, Run, Tables

REJECTED, PUBLISHED = "rejected", "published rejected"


def answer(tables: Tables) -> str:
    """For how many users each model is rejected, and what the paper says."""
    rows = [row for row in tables["goodness_of_fit"] if row["settings"] == "published"]
    published = [row for row in rows if has_number(row.get(PUBLISHED, ""))]
    sentences = [
        f"At a level of 0.05, the test rejects {_shares(rows, REJECTED)} of users, with the published "
        "settings."
    ]
    if published:
        same = all(number(row[REJECTED]) == number(row[PUBLISHED]) for row in published)
        verdict = "as here" if same else "which this study does not reproduce"
        sentences.append(f"In the paper, it rejects {_shares(published, PUBLISHED)}, {verdict}.")
    return " ".join(sentences)


def _shares(rows: list[Row], share: str) -> str:
    """The share of each model on each dataset, the POHMM first."""
    models = sorted({row["model"] for row in rows}, reverse=True)
    return " and ".join(
        f"the {model.upper()} for "
        + listed(
            [f"{percent(row[share])} ({named(row['dataset'])})" for row in rows if row["model"] == model]
        )
        for model in models
    )


PAGE = ResultsPage(
    "Goodness of fit",
    "Does the model fit what people type?",
    answer,
    (
        Run(
            {
                "goodness_of_fit": "The column rejected is the share of users whose typing does not fit the "
                "model; 0.05 would be chance.",
                "p_values": "Compare the two columns: where they agree, it does not matter which p-value is "
                "used.",
                "marginals": "Each column is the share of users rejected with one way to make the POHMM's "
                "marginal distribution; compare them with the published share.",
                "residuals": "A model that is right has a deviation of 1, an autocorrelation of 0, and "
                "shares of 0.05 in the columns not normal and not independent.",
            },
            {
                "p_values": "p-values of all users, cumulative. On the diagonal the model is right; a line "
                "above it is rejected more often than by chance.",
                "residuals": "Residuals of one user of each dataset: a right model's stay within the bands.",
            },
        ),
    ),
)
