"""The page of `keydyn study calibration`."""

from __future__ import annotations

from keydyn.lab.frame.answers import listed, percent
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.page import ResultsPage, Run, Values

LEVEL, ONE_SIDED, FOUND = 0.05, "one-sided", 0.8


def answer(values: Values) -> str:
    """How often right models are rejected, and how often wrong ones are."""
    right, wrong = values["calibration"], values["power"]
    right = right[right["p"] == ONE_SIDED]
    least, most = (right.iloc[int(place)] for place in (right["size"].argmin(), right["size"].argmax()))
    sizes = [
        f"{percent(row['size'])} ({row['model'].upper()}, {dataset_name(row['dataset'])})"
        for row in (least, most)
    ]
    off = [
        f"{row['model'].upper()} on {dataset_name(row['dataset'])}"
        for row in right.to_dict("records")
        if not row["size_low"] <= LEVEL <= row["size_high"]
    ]
    excluded = (
        f"the interval excludes {LEVEL} for the {listed(off)}" if off else f"all intervals hold {LEVEL}"
    )
    hardest = wrong.iloc[int(wrong["missed"].argmax())]
    return (
        f"Where the model is right, the one-sided test at a level of {LEVEL} rejects it for "
        f"{' to '.join(dict.fromkeys(sizes))} of users; {excluded}. Of {len(wrong)} kinds of wrong model it "
        f"rejects {int((wrong['one_sided'] >= FOUND).sum())} for four users in five or more; the one it "
        f"misses most often is {hardest['hypothesis']} ({hardest['model'].upper()}, "
        f"{dataset_name(hardest['dataset'])}), for {percent(hardest['missed'])} of users."
    )


PAGE = ResultsPage(
    "How far the test can be trusted",
    "Does the goodness-of-fit test reject wrong models, and only those?",
    answer,
    ("calibration", "power"),
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
