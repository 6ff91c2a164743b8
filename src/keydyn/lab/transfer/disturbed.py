"""Genuine acceptance where some keys were recorded wrongly, beside what it is without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.decisions.calibration.background import Background
from keydyn.evaluation.rates.confidence import bootstrap_mean
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.long_texts import stream
from keydyn.lab.transfer.claims import known_keys, split, templates_of
from keydyn.lab.transfer.disturbances import CLOCKS, DISTURBANCES, Disturbance, caps_lock
from keydyn.lab.transfer.rates import ROUNDING

ENROLLED, STATED = 5, 0.01
SHARES = (0.01, 0.02, 0.05)
CLEAN = "nothing"
BOTH, AT_ENROLMENT, AFTERWARDS = "both", "at enrolment", "afterwards"


class Case(NamedTuple):
    """Something that goes wrong: its name, the share that it befalls, and on which side."""

    name: str
    share: float
    side: str
    disturb: Disturbance


def cases() -> Iterator[Case]:
    """Every disturbance in some of the keys; clocks, which befall all of them, on either side too."""
    for name, disturb in DISTURBANCES.items():
        for share in SHARES:
            yield Case(name, share, BOTH, disturb)
            if disturb is caps_lock:
                yield Case(name, share, AT_ENROLMENT, disturb)
    for tick, disturb in CLOCKS.items():
        for side in (BOTH, AT_ENROLMENT, AFTERWARDS):
            yield Case(f"a clock of {tick:g} ms", 1.0, side, disturb)


def disturbed(background: Background, typed: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Whether each sample asked about is accepted at the stated rate, in each case and without any."""
    clean = recorded_samples(typed)
    parts = [_accepted(background, clean, clean).assign(case=CLEAN, share=0.0, side=BOTH)]
    for case in cases():
        other = recorded_samples(case.disturb(typed, case.share, stream(seed, case.name, case.share)))
        sides = (clean if case.side == AFTERWARDS else other, clean if case.side == AT_ENROLMENT else other)
        found = _accepted(background, *sides)
        parts.append(found.assign(case=case.name, share=case.share, side=case.side))
    return pd.concat(parts, ignore_index=True)


def _accepted(background: Background, enrolled: Samples, asked: Samples) -> pd.DataFrame:
    """Own samples in each person's name."""
    first, later = split(enrolled, ENROLLED), split(asked, ENROLLED)
    templates, keys = templates_of(background, first.enrol), known_keys(background, later.ask)
    rates = np.empty(len(later.ask))
    for u, ((name, template), amount) in enumerate(zip(templates.items(), first.keys.tolist(), strict=True)):
        rows = np.flatnonzero(later.typist == u)
        scores = background.scores({name: template}, later.ask[rows])[:, 0]
        rates[rows] = background.calibrations.at(amount).false_match_rates(scores, keys[rows])
    return pd.DataFrame({"person": later.typist, "accepted": rates <= STATED * ROUNDING})


def disturbed_frame(accepted: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The share accepted in each case, and by how much it differs from that without, over people."""
    each = {
        key: rows.groupby("person")["accepted"].mean().to_numpy()
        for key, rows in accepted.groupby(["case", "share", "side"], sort=False)
    }
    clean = each[CLEAN, 0.0, BOTH]
    rows = []
    for (case, share, side), shares in each.items():
        difference = shares - clean
        low, high = bootstrap_mean(difference[:, None], seed=seed)
        rows.append(
            {
                "disturbance": case,
                "share": share,
                "side": side,
                "people": len(shares),
                "genuine": float(shares.mean()),
                "difference": float(difference.mean()),
                "difference_low": float(low[0]),
                "difference_high": float(high[0]),
            }
        )
    return pd.DataFrame(rows)
