"""The page of `keydyn study simulation`."""

from __future__ import annotations

from keydyn.lab.frame.answers import of_all, percent
from keydyn.lab.frame.page import ResultsPage, Run, Values

CONSISTENT, EVENTS = "consistent", 1000


def answer(values: Values) -> str:
    """Whether errors of a POHMM vanish, and those of an HMM do not."""
    frame = values["simulation"]
    is_hmm = frame["what"].str.startswith("HMM")
    of_pohmm, of_hmm = frame[~is_hmm], frame[is_hmm]
    found = int((of_pohmm["verdict"] == CONSISTENT).sum())
    biased = int(of_hmm["verdict"].str.startswith("biased").sum())
    slopes = of_pohmm["slope"].dropna()
    ends = " to ".join(dict.fromkeys(f"{one:.2f}".replace("-", "−") for one in (slopes.min(), slopes.max())))
    falling = f", with errors that fall as the number of events to the power of {ends} (−0.50 is expected)"
    first = (
        f"{'Yes' if found == len(of_pohmm) else 'Not always'}: a POHMM finds the true parameters in "
        f"{of_all(found, len(of_pohmm), 'comparison')}{falling if len(slopes) else ''}"
    )
    if len(of_hmm):
        first += (
            "; an HMM, which does not see event types, stays biased in "
            f"{of_all(biased, len(of_hmm), 'comparison')}"
        )
    return " ".join([first + ".", *_states(values)])


def _states(values: Values) -> list[str]:
    """A sentence on hidden states, if there is one true model and its samples are long enough."""
    if "accuracy" not in values:
        return []
    shares = values["accuracy"]
    shares = shares[(shares["scenario"] == 1) & (shares["n"] == EVENTS)]
    if len(shares) != 1:
        return []
    accuracy, best = (percent(shares[name].iloc[0]) for name in ("accuracy", "best"))
    return [
        f"Fitted to {EVENTS:,} events, a POHMM finds {accuracy} of the hidden states; with the true "
        f"parameters {best} are found."
    ]


VERDICTS = (
    "Each line is a kind of model fitted to a kind of data, and a part of its parameters; the last column is "
    "the verdict."
)

PAGE = ResultsPage(
    "Simulated data",
    "Does fitting find the parameters and hidden states of a known model?",
    answer,
    ("simulation", "accuracy"),
    (
        Run(
            {
                "simulation": VERDICTS,
                "accuracy": "Read down a scenario: with more events, the fitted model's accuracy comes close "
                "to the best. Scenarios 1 and 2 are a POHMM on data of a POHMM, without and with smoothing, "
                "3 a POHMM on data of an HMM, and 4 an HMM on data of a POHMM.",
            },
            {
                "simulation": "Errors of every parameter by the number of events: lines that come to zero "
                "are parameters that are found. Bands are one standard deviation.",
                "errors": "Root mean square errors by the number of events, on logarithmic axes, with the "
                "slope of −½ of a consistent estimate.",
                "states": "The share of hidden states that are found, by the number of events.",
            },
        ),
        # That what is found does not depend on one true model: three more, with fewer and shorter samples.
        Run(
            {"simulation": VERDICTS},
            {"truths": "Root mean square errors by the number of events, for each true model."},
            title="Other true models",
            folder="simulation-truths",
            arguments=(
                *("--truth", "persistent", "--truth", "overlapping", "--truth", "random-7"),
                *("--samples", "100", "--longest", "10000"),
            ),
        ),
    ),
)
