"""Indices that a caller hands to the relatives: out of range they are refused, and named."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from keydyn import ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model import Bins, NoContext
from keydyn.model.relatives.labels import LabelledSequences, labelled

X = np.exp(np.random.default_rng(0).normal(4.0, 0.3, (40, 1)))
LABELS = np.resize(np.array(["slow", None, "fast"], dtype=object), 40)
NORMAL = [("normal", np.zeros((2, 2)), np.ones((2, 2)))]
STEPS = np.full((2, 2, 2), 0.5)


def test_labelled_sequences_cannot_be_changed():
    whole = labelled(X, LABELS, [20, 20])
    for one in (whole, whole[0], copy.deepcopy(whole)):
        assert isinstance(one, LabelledSequences)
        assert not one.codes.flags.writeable
        assert not one.event_types.flags.writeable


@dataclasses.dataclass(frozen=True)
class Astray(Bins):
    """Bins that name a table that is not there."""

    table: int = 99

    def rows(self, past):
        return np.full(len(past.last), self.table)


@pytest.mark.parametrize("table", [99, -1, 2**62])
def test_a_context_that_names_a_table_which_is_not_there(table):
    for context in ("emission_context", "transition_context"):
        model = ContextHMM(
            **{"emission_context": None, "transition_context": None, context: Astray((50.0,), 0, table)}
        )
        with pytest.raises(ValueError, match="must name one of its 4 tables for each of 40 events"):
            model.fit(X)


GIVEN = {
    "no context": (
        lambda: ContextHMM.from_parameters(
            [0.5, 0.5], STEPS, NORMAL, emission_context=3, transition_context=None
        ),
        "a context is a Bins, a NoContext or a Labels, not 3",
    ),
    "a feature that is not there": (
        lambda: ContextHMM.from_parameters(
            [0.5, 0.5],
            STEPS[:1],
            [("normal", np.zeros((3, 2)), np.ones((3, 2)))],
            emission_context=Bins((), 7),
            transition_context=NoContext(),
        ),
        "emission_context bins feature 7; there are 1",
    ),
    "no emission": (lambda: PartlyHMM.from_parameters([0.5, 0.5], STEPS[0], 5), "emission must be a list"),
    "labels twice": (
        lambda: PartiallyHMM.from_parameters(
            [0.5, 0.5],
            STEPS[0],
            [("normal", np.zeros((1, 2)), np.ones((1, 2)))],
            p_observed=None,
            p_true=0.9,
            state_labels=["a", "a"],
        ),
        "'a' more than once",
    ),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_given_parameters_of_a_wrong_kind(kind):
    call, message = GIVEN[kind]
    with pytest.raises(ValueError, match=message):
        call()
