"""The page of `keydyn study goodness-of-fit`."""

from __future__ import annotations

import pandas as pd

from keydyn.lab.frame.answers import listed, percent
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.page import ResultsPage, Run, Values

REJECTED, PUBLISHED = "rejected", "published_rejected"


def answer(values: Values) -> str:
    """For how many users each model is rejected, and what the paper says."""
    frame = values["goodness_of_fit"]
    rows = frame[frame["settings"] == "published"]
    published = rows[rows[PUBLISHED].notna()]
    sentences = [
        f"At a level of 0.05, the test rejects {_shares(rows, REJECTED)} of users, with the published "
        "settings."
    ]
    if len(published):
        same = (published[REJECTED].round(3) == published[PUBLISHED].round(3)).all()
        verdict = "as here" if same else "which this study does not reproduce"
        sentences.append(f"In the paper, it rejects {_shares(published, PUBLISHED)}, {verdict}.")
    return " ".join(sentences)


def _shares(rows: pd.DataFrame, share: str) -> str:
    """The share of each model on each dataset, the POHMM first."""
    texts = []
    for model in sorted(set(rows["model"]), reverse=True):
        of = rows[rows["model"] == model]
        found = zip(of[share], of["dataset"], strict=True)
        shares = listed([f"{percent(value)} ({dataset_name(dataset)})" for value, dataset in found])
        texts.append(f"the {model.upper()} for {shares}")
    return " and ".join(texts)


PAGE = ResultsPage(
    "Goodness of fit",
    "Does the model fit what people type?",
    answer,
    ("goodness_of_fit",),
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
