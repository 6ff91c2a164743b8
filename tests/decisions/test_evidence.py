"""Samples that say too little: counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.commands.people import folder_options
from keydyn.decisions.decision import LEAST_KEYSTROKES, LEAST_KNOWN, Evidence, evidence
from keydyn.detectors import make_detector
from keydyn.keystrokes.one_sample import recorded_samples
from tests.decisions.typed_samples import typed


@pytest.mark.parametrize(("detector", "known"), [("pohmm", [8, 5, 0]), ("hmm", [8, 8, 8])])
def test_keystrokes_are_counted(detector, known):
    """A model without event types knows every key."""
    template = make_detector(detector).fit(recorded_samples(typed(users=("ann",), n_keys=8)))
    frame = typed(1, users=("ann",), n_samples=3, n_keys=8)
    frame.loc[8:10, "keyname"] = ["ß", "ö", "ß"]
    frame.loc[16:, "keyname"] = ["null", "nil"] * 4
    found = evidence(recorded_samples(frame), template)
    # Seven pairs each; of ß only the last five keys, four pairs, are as at enrolment, of null none is.
    pairs = [(7, 7), (7, 4), (7, 0)] if detector == "pohmm" else [(0, 0)] * 3
    assert found == [Evidence(8, n, *counts) for n, counts in zip(known, pairs, strict=True)]


def test_a_keystroke_without_any_time_is_not_counted():
    """The first one's interval is not known; without a release nothing is."""
    template = make_detector("pohmm").fit(recorded_samples(typed(users=("ann",))))
    frame = typed(1, users=("ann",), n_samples=1).iloc[:1]
    frame["timerelease"] = np.nan
    assert evidence(recorded_samples(frame), template) == [Evidence(0, 0)]


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        (Evidence(6, 4), []),
        (Evidence(5, 5), ["5 keystrokes, fewer than 6"]),
        (Evidence(9, 9, 8, 2), []),
        (Evidence(9, 9, 7, 0), []),
        (
            Evidence(9, 9, 8, 1),
            ["a different text than at enrolment: 1 of its 8 pairs of keys were typed then"],
        ),
        (Evidence(9, 3), ["3 keystrokes of known keys, fewer than 4"]),
        (Evidence(1, 0), ["1 keystroke, fewer than 6", "0 keystrokes of known keys, fewer than 4"]),
    ],
)
def test_shortages_are_told(found, reasons):
    assert found.shortage(6, 4) == reasons


def test_the_commands_have_the_same_defaults():
    assert (folder_options.LEAST_KEYSTROKES, folder_options.LEAST_KNOWN) == (LEAST_KEYSTROKES, LEAST_KNOWN)
