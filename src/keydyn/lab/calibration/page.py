"""The page of `keydyn study calibration`."""

from __future__ import annotations

from keydyn.lab.frame.cells import listed, named, number, percent, span
from keydyn.lab.frame.page import ResultsPage, Run, Tables

LEVEL, ONE_SIDED, FOUND = 0.05, "one-sided", 0.8


def answer(tables: Tables) -> str:
    """How often right models are rejected, and how often wrong ones are."""
    right = [row for row in tables["calibration"] if row["p"] == ONE_SIDED]
    sizes = {f"{row['model'].upper()}, {named(row['dataset'])}": row["size"] for row in right}
    off = [
        f"{row['model'].upper()} on {named(row['dataset'])}"
        for row in right
        if not number(row["size low"]) <= LEVEL <= number(row["size high"])
    ]
    excluded = (
        f"the interval excludes {LEVEL} for the {listed(off)}" if off else f"all intervals hold {LEVEL}"
    )
    wrong = tables["power"]
    found = sum(number(row["one sided"]) >= FOUND for row in wrong)
    hardest = max(wrong, key=lambda row: number(row["missed"]))
    return (
        f"Where the model is right, the one-sided test at a level of {LEVEL} rejects it for "
        f"{span(sizes, percent)} of users; {excluded}. Of {len(wrong)} kinds of wrong model it rejects "
        f"{found} for four users in five or more; the one it misses most often is {hardest['hypothesis']} "
        f"({hardest['model'].upper()}, {named(hardest['dataset'])}), for {percent(hardest['missed'])} of "
        "users."
    )


PAGE = ResultsPage(
    "How far the test can be trusted",
    "Does the goodness-of-fit test reject wrong models, and only those?",
    answer,
    (
        Run(
            {
                "calibration": "The column size should be 0.05, within its interval, and ks distance should "
                "not exceed ks by chance.",
                "power": "Each line is a wrong hypothesis; the shares rejected should be high, and missed "
                "low.",
            },
            {
                "calibration": "p-values where the model is right, cumulative: a calibrated test stays "
                "within the grey band.",
                "power": "Shares of wrong models that are rejected, with 95 % intervals; higher is better.",
            },
        ),
    ),
)
