"""Enrolled people with their models, and what these say of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.detectors import Detector
from keydyn.enrolment.claims import claim_penalty, scaled_claims
from keydyn.enrolment.manifest import Manifest
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_starts
from keydyn.model.data.vocabulary import Types


@dataclass(frozen=True)
class Enrolled:
    """A manifest, and the templates of everybody in it, or of those who were asked for.

    `pattern` is the detector that fits them, if anybody is to be fitted; that of a population has it.
    """

    manifest: Manifest
    templates: Mapping[str, Detector]
    pattern: Detector | None = None

    @property
    def users(self) -> Types:
        """The names of those whose templates are here, in the manifest's order, (U,)."""
        return np.array([person.user for person in self.manifest.people if person.user in self.templates])

    def samples(self, keystrokes: pd.DataFrame) -> Samples:
        """The samples in the form that the templates need, without vectors."""
        return sequence_samples(keystrokes, self.manifest.sensors)

    def scores(self, samples: Samples) -> Floats:
        """Log-likelihood of every sample under every template, (n, U)."""
        return self._scores(self.users.tolist(), samples)

    def claim_scores(self, user: str, samples: Samples) -> Floats:
        """The score of each sample in the name of a user, (n,): from 0 to 1, beside other people's."""
        cohort, everybody = self._cohort(user), self.manifest.everybody()
        scores = self._scores([user, *everybody], samples)
        in_cohort = [name in cohort for name in everybody]
        return scaled_claims(scores[:, :1], scores[:, 1:][:, in_cohort], scores[:, 1:])[:, 0]

    def claim_penalties(self, user: str, samples: Samples) -> Floats:
        """The rank penalty at each event, (N,), of a session in the name of a user."""
        templates = self.claim_templates(user)
        scores = type(templates[0]).score_events_many(templates, samples)
        return claim_penalty(scores[:, 0], scores[:, 1:], samples.sequences.offsets)

    def claim_templates(self, user: str) -> list[Detector]:
        """The templates that a session in the name of a user is ranked by: the user's own first."""
        return [self.templates[name] for name in (user, *self._cohort(user))]

    def _scores(self, users: list[str], samples: Samples) -> Floats:
        templates = [self.templates[name] for name in users]
        return np.ascontiguousarray(type(templates[0]).score_many(templates, samples))

    def _cohort(self, user: str) -> list[str]:
        cohort = self.manifest.cohort(self.manifest.person(user))
        if not cohort:
            raise ValueError(
                f"a claim is judged beside other users, and {user} was enrolled before there were any: "
                f"enrol others, then enrol {user} again"
            )
        return cohort


def sequence_samples(keystrokes: pd.DataFrame, sensors: tuple[str, ...]) -> Samples:
    """Samples without vectors, which templates that can be stored do not need."""
    starts = sample_starts(keystrokes)
    index = pd.MultiIndex.from_frame(keystrokes.iloc[starts][SAMPLE])
    samples = Samples.of(keystrokes, sensors, vectors=pd.DataFrame(index=index))
    _refuse_zero_times(samples)
    return samples


def _refuse_zero_times(samples: Samples) -> None:
    """A time of 0 ms has no logarithm; a `ValueError` says where it is and what can be done."""
    sequences = samples.sequences
    zero = (sequences.X <= 0) & (np.array(samples.emission) == "lognormal")
    if zero.any():
        row, k = (int(place) for place in np.argwhere(zero)[0])
        s = int(np.searchsorted(sequences.offsets, row, side="right")) - 1
        user, session = samples.index[s]
        name = (sequences.feature_names or ())[k]
        raise ValueError(
            f"user {user}, session {session}, keystroke {row - int(sequences.offsets[s]) + 1}: {name} is "
            "0 ms, which no model of times can take; --clean leaves such times out, as do the rules "
            "equal_presses and zero_durations of keydyn.keystrokes.clean"
        )
