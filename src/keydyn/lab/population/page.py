"""The page of `keydyn study population`."""

from __future__ import annotations

from keydyn.lab.frame.answers import figures_of, of_all, percent, span
from keydyn.lab.frame.page import ResultsPage, Run, Values

POHMM, POPULATION = "pohmm", "population"


def answer(values: Values) -> str:
    """What the population model gains over the POHMM, against enrolled people and against strangers."""
    frame, gains = values["population"], values["significance"]
    rates = {
        name: span(figures_of(frame[frame["detector"] == name], "eer_mean"), percent)
        for name in (POHMM, POPULATION)
    }

    def on(figure: str, verdict: str) -> str:
        found = gains.loc[(gains["against"] == POHMM) & (gains["figure"] == figure), "verdict"].tolist()
        return of_all(found.count(verdict), len(found), "dataset")

    return (
        f"The population model verifies claims at an equal error rate of {rates[POPULATION]}, the POHMM at "
        f"{rates[POHMM]}; it is significantly better on {on('eer', 'better')}, and on "
        f"{on('open_eer', 'better')} if the impostor is a stranger. In continuous verification it "
        f"rejects impostors sooner on {on('amrt', 'better')} and later on {on('amrt', 'worse')}."
    )


PAGE = ResultsPage(
    "The population model",
    "What does learning from many people gain over a model of each person alone?",
    answer,
    ("population", "significance"),
    (
        Run(
            {
                "population": "Compare the lines of a dataset: higher is better for accuracy, lower for "
                "everything else.",
                "across": "Each line compares people of one dataset, with a population learnt from another "
                "dataset, with what is named in the column Against.",
                "worst_users": "Each line is a user. Where the change is larger than the distance to the "
                "nearest other user, the typing moved farther than people are apart.",
                "significance": "Each line compares the population model with the detector in the column "
                "Against. A positive difference is better for accuracy, a negative one for the rest.",
                "parts": "Each line is the model without one part. Where a difference is bold, the part is "
                "worth having (accuracy falls, the others rise) or harmful (the other way round).",
                "error_rates": "FNMR is the share of genuine samples rejected at a threshold at which the "
                "named share of impostors (FMR) is accepted; lower is better.",
            },
            {
                "population": "Equal error rates by dataset and detector, closed and open set; lower is "
                "better. Bars are 95 % intervals over users.",
                "population_enrolment": "Recognition by the number of samples that a person enrols with. "
                "Nobody who is asked was learnt from.",
                "population_keystrokes": "Recognition by the number of keys in the sample that is asked.",
                "population_people": "Recognition by the number of people that the population was learnt "
                "from.",
                "population_parts": "What is lost without each part of the model. To the right of zero, the "
                "part helps.",
                "population_changes": "Each dot is a user of Password: the equal error rate against how much "
                "the typing changed, and against how close the nearest other user is.",
            },
        ),
    ),
)
