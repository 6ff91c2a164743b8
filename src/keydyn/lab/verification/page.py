"""The page of `keydyn study verification`."""

from __future__ import annotations

from keydyn.lab.frame.cells import column, estimate, number, of_all, span
from keydyn.lab.frame.markdown_rows import Row
from keydyn.lab.frame.page import ResultsPage, Run, Tables

GENUINE, REPLAY, THROUGH = "genuine", "replay", "Gets through"


def answer(tables: Tables) -> str:
    """The error rates at the default operating point, and which attacks succeed."""
    from keydyn.lab.verification.tables import TARGET

    rows = tables["decisions"]
    within = of_all(sum(row["Target within"] == "yes" for row in rows), len(rows), "dataset")
    unsure = all(number(row["Genuine unsure"]) > number(row["Genuine reject"]) for row in rows)
    others = "; most of the others are answered with unsure, not rejected" if unsure else ""
    sentences = [
        f"With the default target of {TARGET}, {span(column(rows, 'Strangers accepted'))} of strangers' "
        f"claims are accepted, which agrees with the target on {within}, and "
        f"{span(column(rows, 'Genuine accepted'))} of genuine samples{others}."
    ]
    attacks = [row for row in tables.get("attacks", []) if row["Attack"] != GENUINE]
    if attacks:
        sentences.append(_attacks(attacks))
    return " ".join(sentences)


def _attacks(rows: list[Row]) -> str:
    worst = max(rows, key=lambda row: number(row[THROUGH]))
    replayed = column([row for row in rows if row["Attack"] == REPLAY], THROUGH)
    copies = (
        f"; an exact copy of a recorded sample succeeds in {span(replayed)} of attempts" if replayed else ""
    )
    return (
        f"The most successful attack (“{worst['Attack']}”) gets through in {estimate(worst[THROUGH])} of "
        f"attempts ({worst['Dataset']}){copies}."
    )


PAGE = ResultsPage(
    "Verification and attacks",
    "How often is a stranger accepted, how often the right person, and what can an attacker do?",
    answer,
    (
        Run(
            {
                "decisions": "Strangers accepted should be near the target, genuine accepted as high as "
                "possible. Cllr is the cost of the stated likelihood ratios in bits: 0 is perfect, 1 says "
                "nothing; min is what it would be with perfect calibration.",
                "targets": "Read down a dataset: a stricter target accepts fewer strangers, and fewer "
                "genuine samples. The measured share should agree with the target.",
                "keys": "Read down a dataset: the more is typed, the more genuine samples are accepted, "
                "while the share of strangers accepted stays near the target.",
                "few_samples": "Compare the two lines of a dataset: enrolment with everything, and with a "
                "single sample.",
                "identify": "The first two columns are samples of enrolled people, the last one samples of "
                "strangers, who should not be named.",
                "watching": "Compare the ways at the same rate of false lock-outs: fewer keys, and fewer "
                "impostors never noticed, are better.",
                "poisoning": "Compare before with after: what an impostor who is sometimes accepted makes "
                "of a template that learns, with a bound on its changes and without.",
                "privacy": "Compare guesses from timings with guesses without them: the difference is what "
                "timings give away of the text.",
                "ageing": "Follow one kind of template from sitting to sitting: genuine accepted falls as "
                "typing changes, unless the template learns.",
                "fairness": "Compare the groups of a dataset: equal rates would be fair.",
                "attacks": "The column Gets through is what matters: attempts that are accepted and not "
                "noticed. The first line of a dataset is the person themselves.",
                "copies": "Copies and robots should be noticed; fresh samples that are noticed are false "
                "alarms.",
            },
            {
                "decisions_by_keys": "Genuine samples and strangers' claims accepted, by the number of keys "
                "typed, at a target of 1 %, with 95 % bands over people.",
                "reliability": "Likelihood ratios as stated (to the right) and as observed (upwards): on the "
                "line, a ratio is what it says.",
                "decisions_det": "The trade-off between the two errors: the nearer to the bottom left "
                "corner, the better.",
                "watching_delay": "Keys until an impostor is noticed, by way to watch and rate of false "
                "lock-outs; fewer are better. Bars are 95 % intervals over people.",
                "watching_unnoticed": "Impostors who are never noticed, in the same way.",
                "ageing": "Shares accepted, sitting by sitting after enrolment in the first, for each kind "
                "of template, with 95 % bands over people.",
            },
        ),
    ),
)
