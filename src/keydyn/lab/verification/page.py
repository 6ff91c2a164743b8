"""The page of `keydyn study verification`."""

from __future__ import annotations

from collections.abc import Sequence

from keydyn.evaluation.rates.confidence import Rate
from keydyn.lab.frame.answers import of_all, rate_of, rate_words, size_of, span
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.page import ResultsPage, Run, Values

GENUINE, REPLAY = "genuine", "replay"


def answer(values: Values) -> str:
    """The error rates at the default operating point, and which attacks succeed."""
    from keydyn.lab.verification.tables import TARGET

    decisions = values["decisions"]
    rows = decisions.to_dict("records")
    strangers = {row["dataset"]: rate_of(row, "fmr", "false_claims") for row in rows}
    genuine = {row["dataset"]: rate_of(row, "genuine_accepted", "genuine_claims") for row in rows}
    within = of_all(int(decisions["target_within"].sum()), len(rows), "dataset")
    unsure = (decisions["genuine_unsure"] > decisions["genuine_reject"]).all()
    others = "; most of the others are answered with unsure, not rejected" if unsure else ""
    sentences = [
        f"With the default target of {TARGET}, {span(strangers, lambda rate: rate_words(rate, 2), size_of)} "
        f"of strangers' claims are accepted, which agrees with the target on {within}, and "
        f"{span(genuine, rate_words, size_of)} of genuine samples{others}."
    ]
    if "attacks" in values:
        attacks = [
            (row["dataset"], row["attack"], rate_of(row, "passed", "tries"))
            for row in values["attacks"].to_dict("records")
            if row["attack"] != GENUINE
        ]
        sentences += [_attacks(attacks)] if attacks else []
    return " ".join(sentences)


def _attacks(attacks: Sequence[tuple[str, str, Rate]]) -> str:
    """`attacks` are datasets, attacks and how often these get through."""
    dataset, attack, worst = max(attacks, key=lambda one: size_of(one[2]))
    replayed = {dataset: rate for dataset, attack, rate in attacks if attack == REPLAY}
    copies = (
        f"; an exact copy of a recorded sample succeeds in {span(replayed, rate_words, size_of)} of attempts"
        if replayed
        else ""
    )
    return (
        f"The most successful attack (“{attack}”) gets through in {rate_words(worst)} of attempts "
        f"({dataset_name(dataset)}){copies}."
    )


PAGE = ResultsPage(
    "Verification and attacks",
    "How often is a stranger accepted, how often the right person, and what can an attacker do?",
    answer,
    ("decisions", "attacks"),
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
