"""The pieces of work on forged typing, which judge each place's people with defences learnt elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from keydyn.decisions.calibration.background import shipped_background
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.transfer.places import SIMULATED, Place
from keydyn.lab.typed_or_forged import FEWEST, STARTS
from keydyn.lab.verification.forged.attacked import (
    ATTACKED,
    ATTACKS,
    ENROLMENT,
    FALSE_ALARMS,
    FEW,
    FORGERIES,
    KNOWING,
    SHORT,
    TEXTS,
    WHOLE,
    judged,
)
from keydyn.lab.verification.forged.defences import elsewhere, shipped

# The places that each place's defence is learnt from; Aalto is judged by the shipped one, learnt from both.
SOURCES = {"fable": ("essay",), "essay": ("fable",), "aalto": ("fable", "essay")} | {
    one: (other,) for one, other in (SIMULATED, SIMULATED[::-1])
}


def forged_pieces(places: Sequence[Place], seed: int) -> list[Piece]:
    """A piece for each place whose sources are all present."""
    here = {place.name: place for place in places}
    return [
        _piece(here[name], [here[source] for source in sources], seed)
        for name, sources in SOURCES.items()
        if name in here and all(source in here for source in sources)
    ]


def _piece(target: Place, sources: Sequence[Place], seed: int) -> Piece:
    stem = target.name.replace(" ", "_")
    people = target.tried if target.fresh is None else target.fresh
    inputs = {
        "data": {place.name: place.checksums for place in (target, *sources)},
        "keystrokes": [len(people), *(len(place.learnt) for place in sources)],
        "shipped": shipped_background().sha256 if len(sources) > 1 else "",
        "attacks": [*ATTACKS, *(name for names in KNOWING.values() for name in names)],
        "numbers": [ENROLMENT, ATTACKED, FEW, *TEXTS, SHORT, WHOLE, *STARTS, FEWEST],
        "seed": seed,
    }
    call = partial(_judged, target, list(sources), seed)
    names = (f"{stem}-{FORGERIES}", f"{stem}-{FALSE_ALARMS}")
    return Piece(names, inputs, [call], f"{target.name} · forged typing", 3.0 * len(people))


def _judged(target: Place, sources: list[Place], seed: int) -> tuple[pd.DataFrame, ...]:
    """The frames of forged and of typed samples for a place."""
    samples = [place.known for place in sources]
    defence = shipped(samples, seed) if len(sources) > 1 else elsewhere(samples[0], seed)
    found = judged(target.fresh_samples, defence, seed)
    return tuple(frame.assign(dataset=target.name).astype({"user": str}) for frame in found)
