"""Writes tables, figures and the report from the measurements of the verification study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import Rate
from keydyn.evaluation.rates.error_curve import ErrorCurve, common_grid
from keydyn.evaluation.rates.likelihood_ratios import reliability
from keydyn.lab.drawing.curves import det_figure, reliability_figure, user_curves_figure
from keydyn.lab.drawing.panels import Curve, curves_of, intervals_figure
from keydyn.lab.frame.names import dataset_name, lead_of, of_all, rate_of, rate_words, size_of, span
from keydyn.lab.frame.outputs import Outputs, read_frames
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.tables import Table
from keydyn.lab.verification.all_measurements import CLAIMS, FRAMES, IDENTIFIED, SPEED, WATCHING, Measured
from keydyn.lab.verification.forged.attacked import FALSE_ALARMS, FORGERIES, WHOLE
from keydyn.lab.verification.forged.tables import (
    false_alarms_table,
    forgeries_panels,
    forgeries_table,
    forgeries_words,
)
from keydyn.lab.verification.security import AGEING, ATTACKS, COPIES, POISONING
from keydyn.lab.verification.tables import (
    TARGET,
    ageing_table,
    attacks_table,
    copies_table,
    decisions_table,
    fairness_rates,
    fairness_table,
    few_samples_table,
    identification_table,
    keys_table,
    poisoning_table,
    targets_table,
    whole,
)
from keydyn.lab.verification.watching_tables import DRAWN, watching_panels, watching_table, watching_words

TABLES = {
    ATTACKS: attacks_table,
    COPIES: copies_table,
    AGEING: ageing_table,
    FORGERIES: forgeries_table,
    FALSE_ALARMS: false_alarms_table,
    POISONING: poisoning_table,
}
NOT_ENOUGH = (
    "Typing rhythm is a risk signal and a reason to ask for another factor, never the only factor: a "
    "false-match rate of one in 10,000, which NIST SP 800-63B-4 asks of biometrics, is out of reach of these "
    "samples and is not claimed."
)
NESTED = (
    "People are divided into five folds. For every two folds, the population, the cohort and the calibration "
    "are learnt from the other three; people of one of the two are enrolled and those of the other are "
    "strangers, and then the other way round. The operating point was fixed in advance. The form of the "
    "score and of the calibration was found with some of these people in view (decision 0034 says what was "
    "tried); their parameters are learnt from other people."
)


def write(outputs: Outputs, measured: Measured, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    seed = facts.get("seed", 0)
    outputs.frames(**measured)
    claims = measured[CLAIMS]
    main = outputs.table(decisions_table(claims, seed))
    words = [NOT_ENOUGH, NESTED]
    keys = outputs.table(keys_table(claims, seed))
    sections = [
        Section(
            "Strangers refused",
            [NESTED],
            [main, outputs.table(targets_table(claims, seed))],
            [_reliability(outputs, claims), _det(outputs, claims)],
        ),
        Section("How much has to be typed", (), [keys], [_by_keys(outputs, keys.frame)]),
        Section("Few samples to enrol with", (), [outputs.table(few_samples_table(claims, seed))]),
        Section("Who is it?", (), [outputs.table(identification_table(measured[IDENTIFIED], seed))]),
    ]
    if WATCHING in measured:
        said = watching_words(measured[WATCHING])
        words += said
        table = outputs.table(watching_table(measured[WATCHING]))
        sections.append(Section("Is it still them?", said, [table], _watching(outputs, measured[WATCHING])))
    titles = {
        "What attackers get": (ATTACKS, COPIES),
        "Forged typing": (FORGERIES, FALSE_ALARMS),
        "People change": (AGEING, POISONING),
    }
    for title, names in titles.items():
        tables = [outputs.table(TABLES[name](measured[name], seed)) for name in names if name in measured]
        draw = DRAWINGS.get(names[0])
        pictures = [draw(outputs, tables[0].frame)] if draw is not None and names[0] in measured else []
        if tables:
            sections.append(Section(title, (), tables, pictures))
    fairness = fairness_table(fairness_rates(claims, measured[SPEED], seed))
    sections.append(Section("Whose errors they are", (), [outputs.table(fairness)]))
    outputs.words(words)
    outputs.report("Decisions", [NOT_ENOUGH, *lead_of(facts)], sections, facts)
    return [main]


def read(folder: Path) -> Measured:
    """Read all frames that a run kept in its folder."""
    return read_frames(folder, FRAMES)


def ratios_of(claims: pd.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """The log-ratios of genuine and of strangers' claims with whole samples, by dataset."""
    return {
        str(dataset): (of.loc[of["genuine"], "llr"].to_numpy(), of.loc[~of["genuine"], "llr"].to_numpy())
        for dataset, of in whole(claims).groupby("dataset", sort=False)
    }


def _reliability(outputs: Outputs, claims: pd.DataFrame) -> Picture:
    return outputs.figure(
        reliability_figure({name: reliability(*ratios) for name, ratios in ratios_of(claims).items()}),
        "reliability",
        "Reliability, open set: likelihood ratios as stated and as observed, in ten bins of equal weight. On "
        "the line, the two agree.",
        "A panel for each dataset with dots near the diagonal.",
    )


def _det(outputs: Outputs, claims: pd.DataFrame) -> Picture:
    grid = common_grid()
    curves = {name: Curve(grid, ErrorCurve.of(*of).fnmr_on(grid)) for name, of in ratios_of(claims).items()}
    return outputs.figure(
        det_figure({name: {"population": curve} for name, curve in curves.items()}),
        "decisions_det",
        "Detection error trade-off, open set: calibrated ratios of all claims, one threshold for everybody.",
        "A panel for each dataset with one falling line.",
    )


def _by_keys(outputs: Outputs, frame: pd.DataFrame) -> Picture:
    # Short texts have a single length and hence no curve; they are shown only if there is nothing else.
    several = frame[frame.groupby("dataset")["keys"].transform("size") > 1]
    frame = several if len(several) else frame
    figures = {"genuine accepted": "genuine_accepted", "strangers accepted": "fmr"}
    panels = curves_of(frame.sort_values("keys", kind="stable"), "keys", figures)
    return outputs.figure(
        user_curves_figure(panels, "keys typed"),
        "decisions_by_keys",
        "Decisions by the number of keys, open set: genuine samples accepted, and strangers' claims accepted "
        "at a target of 1 %, with 95 % bands over people.",
        "Two rows of panels, a column for each dataset, lines over a logarithmic axis.",
    )


def _watching(outputs: Outputs, frame: pd.DataFrame) -> list[Picture]:
    captions = {
        "watching_delay": "Keys until an impostor is noticed, open set, with 95 % intervals over people.",
        "watching_unnoticed": "Impostors never noticed, open set, with 95 % intervals over people.",
    }
    return [
        outputs.figure(
            intervals_figure(watching_panels(frame, name), DRAWN[name][1]),
            name,
            caption,
            "For each dataset, rate and way to watch two dots with intervals.",
        )
        for name, caption in captions.items()
    ]


def _ageing(outputs: Outputs, frame: pd.DataFrame) -> Picture:
    titles = {"genuine accepted": "genuine", "impostors accepted": "impostor"}
    return outputs.figure(
        user_curves_figure(curves_of(frame.assign(dataset="password"), "sitting", titles, "kind"), "sitting"),
        "ageing",
        "Password, open set: shares accepted sitting by sitting after enrolment in the first, with 95 % "
        "bands over people.",
        "Two panels, one above the other, with a line for each kind of template.",
    )


def _forgeries(outputs: Outputs, frame: pd.DataFrame) -> Picture:
    return outputs.figure(
        intervals_figure(forgeries_panels(frame), "forgeries that get through, %"),
        "forgeries",
        f"Forgeries of {WHOLE} keys or more that the score accepts and nothing notices, by attack and by "
        "what the attacker has, with 95 % intervals over people. No detector was trained on the attack that "
        "it judges.",
        "A panel for each dataset, a row for each attack, with dots and intervals.",
    )


DRAWINGS = {AGEING: _ageing, FORGERIES: _forgeries}
GENUINE, REPLAY = "genuine", "replay"


def answer(values: Values) -> str:
    """A summary of the error rates at the default operating point and of the most successful attacks."""
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
    if FORGERIES in values and FALSE_ALARMS in values:
        sentences.append(forgeries_words(values[FORGERIES], values[FALSE_ALARMS]))
    return " ".join(sentences)


def _attacks(attacks: Sequence[tuple[str, str, Rate]]) -> str:
    """A sentence about attacks, given as datasets, names of attacks and their success rates."""
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
    ("decisions", "attacks", FORGERIES, FALSE_ALARMS),
    {
        "decisions": "Strangers accepted should be near the target, genuine accepted as high as possible. "
        "Cllr is the cost of the stated likelihood ratios in bits: 0 is perfect, 1 says nothing; min is what "
        "it would be with perfect calibration.",
        "targets": "Read down a dataset: a stricter target accepts fewer strangers, and fewer genuine "
        "samples. The measured share should agree with the target.",
        "keys": "Read down a dataset: the more is typed, the more genuine samples are accepted, while the "
        "share of strangers accepted stays near the target.",
        "few_samples": "Compare the two lines of a dataset: enrolment with everything, and with a single "
        "sample.",
        "identify": "The first two columns are samples of enrolled people, the last one samples of "
        "strangers, who should not be named.",
        "watching": "Compare the ways at the same rate of false lock-outs: fewer keys, and fewer impostors "
        "never noticed, are better.",
        "poisoning": "Compare before with after: what an impostor who is sometimes accepted makes of a "
        "template that learns, with a bound on its changes and without.",
        "ageing": "Follow one kind of template from sitting to sitting: genuine accepted falls as typing "
        "changes, unless the template learns.",
        "fairness": "Compare the groups of a dataset: equal rates would be fair.",
        "attacks": "The column Gets through is what matters: attempts that are accepted and not noticed. The "
        "first line of a dataset is the person themselves.",
        FORGERIES: "The columns Gets through are what matters: forgeries that the score accepts and nothing "
        "notices. Read down an attack: the more the attacker has, the more is accepted.",
        FALSE_ALARMS: "False alarms should be near 1 %; what is lost is what people pay for the alarms.",
        "copies": "Copies and robots should be noticed; fresh samples that are noticed are false alarms.",
    },
    {
        "decisions_by_keys": "Genuine samples and strangers' claims accepted, by the number of keys typed, "
        "at a target of 1 %, with 95 % bands over people.",
        "reliability": "Likelihood ratios as stated (to the right) and as observed (upwards): on the line, "
        "the two agree.",
        "decisions_det": "The trade-off between the two errors: the nearer to the bottom left corner, the "
        "better.",
        "watching_delay": "Keys until an impostor is noticed, by way to watch and rate of false lock-outs; "
        "fewer are better. Bars are 95 % intervals over people.",
        "watching_unnoticed": "Impostors who are never noticed, in the same way.",
        FORGERIES: "Forgeries that the score accepts and nothing notices, by attack and by what the attacker "
        "has; the fewer the better. Bars are 95 % intervals over people.",
        "ageing": "Shares accepted, sitting by sitting after enrolment in the first, for each kind of "
        "template, with 95 % bands over people.",
    },
)
