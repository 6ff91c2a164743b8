"""The page of `keydyn study relatives`."""

from __future__ import annotations

from keydyn.lab.frame.answers import figures_of, of_all, percent, span
from keydyn.lab.frame.page import ResultsPage, Run, Values

POHMM, HMM = "pohmm", "hmm"
BEST = ["acc_best", "eer_best", "amrt_best"]


def answer(values: Values) -> str:
    """On how many datasets the POHMM is best, and how far the best relative is behind."""
    frame = values["relatives"]
    best, alone, nearest = 0, 0, {}
    for dataset, rows in frame.groupby("dataset", sort=False):
        pohmm = rows["detector"] == POHMM
        best += bool(rows.loc[pohmm, BEST].to_numpy(dtype=bool).all())
        alone += all(rows[name].tolist() == pohmm.tolist() for name in BEST)
        nearest[str(dataset)] = rows.loc[~rows["detector"].isin((POHMM, HMM)), "acc_mean"].max()
    n_datasets, pohmm_figures = len(nearest), figures_of(frame[frame["detector"] == POHMM], "acc_mean")
    return (
        f"On {of_all(best, n_datasets, 'dataset')} no other model is significantly better than the POHMM by "
        f"accuracy, equal error rate or rejection time, and on {of_all(alone, n_datasets, 'dataset')} it is "
        "significantly better than all others by all three. It identifies "
        f"{span(pohmm_figures, percent)} of samples, the best of the three relatives "
        f"{span(nearest, percent)}."
    )


PAGE = ResultsPage(
    "The POHMM and its relatives",
    "Is the POHMM better than earlier models that use context?",
    answer,
    ("relatives",),
    (
        Run(
            {
                "relatives": "Compare the lines of a dataset: higher is better for accuracy, lower for the "
                "other two.",
            },
            {
                "lost_context": "What happens as more and more events lose their context (to the right): "
                "log-likelihood, accuracy and equal error rate of each model. Flat lines belong to models "
                "that never had the context."
            },
        ),
    ),
)
