"""Decisions: tables, figures and report from what the verification study measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.error_curve import ErrorCurve, common_grid
from keydyn.evaluation.rates.fairness import error_rates_by
from keydyn.evaluation.rates.likelihood_ratios import reliability
from keydyn.lab.drawing.curves import det_figure, reliability_figure, user_curves_figure
from keydyn.lab.drawing.intervals import intervals_figure
from keydyn.lab.drawing.panels import Curve
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.tables import Table
from keydyn.lab.recognition.report import lead_of
from keydyn.lab.verification.fairness_table import fairness_table
from keydyn.lab.verification.frames import CLAIMS, IDENTIFIED, SPEED, WATCHING, Measured
from keydyn.lab.verification.security_measurements import AGEING, ATTACKS, COPIES, POISONING, PRIVACY
from keydyn.lab.verification.security_tables import (
    ageing_table,
    attacks_table,
    copies_table,
    poisoning_table,
    privacy_table,
)
from keydyn.lab.verification.tables import (
    OPEN_SET,
    decisions_table,
    few_samples_table,
    identification_table,
    keys_table,
    targets_table,
    whole,
)
from keydyn.lab.verification.watching_tables import DRAWN, watching_panels, watching_table, watching_words

TABLES = {
    ATTACKS: attacks_table,
    COPIES: copies_table,
    AGEING: ageing_table,
    POISONING: poisoning_table,
    PRIVACY: privacy_table,
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


def write_verification(
    outputs: Outputs, measured: Measured, facts: Mapping[str, Any], seed: int = 0
) -> list[Table]:
    """Tables, figures and report; what the terminal shows."""
    for name, frame in measured.frames.items():
        outputs.frame(frame, name)
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
        "People change": (AGEING, POISONING),
        "What timings give away": (PRIVACY,),
    }
    for title, names in titles.items():
        tables = [outputs.table(TABLES[name](measured[name], seed)) for name in names if name in measured]
        pictures = [_ageing(outputs, tables[0].frame)] if AGEING in names and tables else []
        if tables:
            sections.append(Section(title, (), tables, pictures))
    sections.append(Section("Whose errors they are", (), [outputs.table(_fairness(measured, seed))]))
    outputs.words(words)
    outputs.report("Decisions", [NOT_ENOUGH, *lead_of(facts)], sections, facts)
    return [main]


def _fairness(measured: Measured, seed: int) -> Table:
    """Errors by typing speed and of the worst tenth, of all datasets."""
    frames, shown = [], []
    speeds = measured[SPEED].set_index(["dataset", "user"])["median_interval"]
    for dataset, of in whole(measured[CLAIMS]).groupby("dataset", sort=False):
        decisions = pd.DataFrame(
            {
                "user": of["claimed"],
                "genuine": of["genuine"],
                "answer": of["answer"],
                "median_interval": of["claimed"].map(speeds[dataset]),
            }
        )
        rates = error_rates_by(decisions, ["median_interval"], seed)
        frames.append(rates.assign(dataset=dataset))
        cells = fairness_table(rates, "fairness", "", "").shown
        cells.insert(0, "Dataset", dataset_name(str(dataset)))
        shown.append(cells)
    note = (
        f"{OPEN_SET} Means over the users claimed, at the default operating point; unsure counts as refused. "
        "Thirds are of users by their median interval, so that the lowest third types fastest. The worst "
        "tenth is chosen on every other decision and reported on the rest."
    )
    return Table(
        "fairness",
        "Error rates by typing speed, and of the worst tenth",
        note,
        pd.concat(frames, ignore_index=True),
        pd.concat(shown, ignore_index=True),
        labels=3,
    )


def _reliability(outputs: Outputs, claims: pd.DataFrame) -> Picture:
    panels = {}
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        genuine, others = (of.loc[of["genuine"] == kind, "llr"].to_numpy() for kind in (True, False))
        panels[str(dataset)] = reliability(genuine, others)
    return outputs.figure(
        reliability_figure(panels),
        "reliability",
        "Reliability, open set: likelihood ratios as stated and as observed, in ten bins of equal weight. On "
        "the line a ratio is what it says.",
        "A panel for each dataset with dots near the diagonal.",
    )


def _det(outputs: Outputs, claims: pd.DataFrame) -> Picture:
    grid = common_grid()
    panels = {}
    for dataset, of in whole(claims).groupby("dataset", sort=False):
        genuine, others = (of.loc[of["genuine"] == kind, "llr"].to_numpy() for kind in (True, False))
        panels[str(dataset)] = {"population": Curve(grid, ErrorCurve.of(genuine, others).fnmr_on(grid))}
    return outputs.figure(
        det_figure(panels),
        "decisions_det",
        "Detection error trade-off, open set: calibrated ratios of all claims, one threshold for everybody.",
        "A panel for each dataset with one falling line.",
    )


def _by_keys(outputs: Outputs, frame: pd.DataFrame) -> Picture:
    # A short text has one length only, and no curve; it is shown if nothing else is there.
    several = frame[frame.groupby("dataset")["keys"].transform("size") > 1]
    frame = several if len(several) else frame
    panels = {
        str(dataset): {
            title: {
                "population": Curve(
                    of["keys"].to_numpy(dtype=np.float64),
                    *(of[f"{name}{end}"].to_numpy(dtype=np.float64) for end in ("", "_low", "_high")),
                )
            }
            for title, name in (("genuine accepted", "genuine_accepted"), ("strangers accepted", "fmr"))
        }
        for dataset, of in frame.sort_values("keys", kind="stable").groupby("dataset", sort=False)
    }
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
    panels = {
        title: {
            str(kind): Curve(
                of["sitting"].to_numpy(dtype=np.float64),
                *(of[f"{name}{end}"].to_numpy(dtype=np.float64) for end in ("", "_low", "_high")),
            )
            for kind, of in frame.groupby("kind", sort=False)
        }
        for title, name in titles.items()
    }
    return outputs.figure(
        user_curves_figure({"password": panels}, "sitting"),
        "ageing",
        "Password, open set: shares accepted sitting by sitting after enrolment in the first, with 95 % "
        "bands over people.",
        "Two panels, one above the other, with a line for each kind of template.",
    )
