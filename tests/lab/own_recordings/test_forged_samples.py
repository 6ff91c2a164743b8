"""The table of decisions says how many genuine samples were rejected as not typed by a hand."""

from __future__ import annotations

from keydyn.datasets import make_typists
from keydyn.decisions.calibration.background import shipped_background
from keydyn.evaluation.protocols.protocol import Chronological
from keydyn.keystrokes.samples import Samples
from keydyn.lab.own_recordings.decisions import decided, decisions_table


def answers(n_keys):
    """What `evaluate` finds of simulated people, who are a program, and the note under its table."""
    samples = Samples.without_vectors(make_typists(4, 4, "free", n_keys, random_state=1))
    found = decided(samples, Chronological(), lambda _: (shipped_background(), "shipped"), ())
    return found, decisions_table({"decisions": found}).note


def test_long_samples_of_a_program_are_counted():
    found, note = answers(150)
    (genuine,) = (row for row in found["claims"] if row["claims"] == "genuine")
    assert 0 < found["forged"] <= genuine["reject"] * genuine["number"] + 1e-9
    assert f"Rejected because no hand seems to have typed them: {found['forged']} genuine ones." in note


def test_short_samples_are_not_rejected_as_forged():
    found, note = answers(80)
    assert found["forged"] == 0
    assert "no hand" not in note
