"""The page of `keydyn study simulation`."""

from __future__ import annotations

from keydyn.lab.frame.cells import has_number, number, of_all, percent
from keydyn.lab.frame.page import ResultsPage, Run, Tables

CONSISTENT, EVENTS = "consistent", "1000"


def answer(tables: Tables) -> str:
    """Whether errors of a POHMM vanish, and those of an HMM do not."""
    of_pohmm, of_hmm = (
        [row for row in tables["simulation"] if row["what"].startswith("HMM") == is_hmm]
        for is_hmm in (False, True)
    )
    found = sum(row["verdict"] == CONSISTENT for row in of_pohmm)
    biased = sum(row["verdict"].startswith("biased") for row in of_hmm)
    slopes = [row["slope"].replace("-", "−") for row in of_pohmm if has_number(row["slope"])]
    ends = " to ".join(dict.fromkeys(f(slopes, key=number) for f in (min, max))) if slopes else ""
    falling = f", with errors that fall as the number of events to the power of {ends} (−0.50 is expected)"
    first = (
        f"{'Yes' if found == len(of_pohmm) else 'Not always'}: a POHMM finds the true parameters in "
        f"{of_all(found, len(of_pohmm), 'comparison')}{falling if ends else ''}"
    )
    if of_hmm:
        first += (
            "; an HMM, which does not see event types, stays biased in "
            f"{of_all(biased, len(of_hmm), 'comparison')}"
        )
    sentences = [first + "."]
    shares = [row for row in tables.get("accuracy", []) if (row["scenario"], row["n"]) == ("1", EVENTS)]
    if len(shares) == 1:
        accuracy, best = (percent(shares[0][name]) for name in ("accuracy", "best"))
        sentences.append(
            f"Fitted to {int(EVENTS):,} events, a POHMM finds {accuracy} of the hidden states; with the true "
            f"parameters {best} are found."
        )
    return " ".join(sentences)


VERDICTS = (
    "Each line is a kind of model fitted to a kind of data, and a part of its parameters; the last column is "
    "the verdict."
)

PAGE = ResultsPage(
    "Simulated data",
    "Does fitting find the parameters and hidden states of a known model?",
    answer,
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
