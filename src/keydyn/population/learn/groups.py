"""Groups of people: what is worked on at a time, so that memory does not grow with the number of people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.keystrokes.samples import Samples
from keydyn.model.data import vocabulary
from keydyn.model.data.vocabulary import Types
from keydyn.population.features import Observations, feature_order, observations
from keydyn.population.learn.stored_arrays import Store, Stored

# A group has no more people and, unless one person typed more, no more events.
MOST_PEOPLE, MOST_EVENTS = 250, 250_000


@dataclass(frozen=True, eq=False)
class Events:
    """The samples of a group, those of one person together; codes are numbers in the order of appearance.

    `place`, applied to codes, gives places in the sorted vocabulary.
    """

    stored: Stored
    place: Integers

    def load(self) -> tuple[Observations, Integers]:
        """The events, and the sample with which each person begins, (U + 1,)."""
        values, codes, offsets, jacobian, begins = self.stored.load()
        return Observations(values, self.place[codes], offsets, jacobian), begins


@dataclass(frozen=True, eq=False)
class Groups:
    """All people, in groups.

    Attributes
    ----------
    features, vocabulary : of all samples together
    events : of each group
    sizes : (n,) people of each group
    n_samples : of all people
    """

    features: tuple[str, ...]
    vocabulary: Types
    events: list[Events]
    sizes: Integers
    n_samples: int

    @property
    def n_people(self) -> int:
        return int(self.sizes.sum())

    @property
    def people(self) -> list[Integers]:
        """The numbers of each group's people."""
        return np.split(np.arange(self.n_people), np.cumsum(self.sizes)[:-1])


def gathered(
    samples: Samples | Iterable[Samples], store: Store, features: tuple[str, ...] | None = None
) -> Groups:
    """All samples in groups of people, in the order in which they first appear.

    Of several `Samples` each is looked at once and then forgotten; a person's must all be in one of them.
    `features` are those that samples must have, by default what the first ones have.
    """
    types: Types = np.array([], dtype=str)
    used: set[int] = set()
    people: set[Any] = set()
    stored: list[Stored] = []
    sizes: list[int] = []
    n_samples = 0
    for some in [samples] if isinstance(samples, Samples) else samples:
        if not isinstance(some, Samples):
            raise TypeError(f"fit takes Samples, or several of them in turn, not {type(some).__name__}")
        if len(some) == 0:
            continue
        features = features or feature_order(some)
        types = vocabulary.union(types, some.sequences.event_types)
        codes, users = pd.factorize(some.users)
        twice = people.intersection(users.tolist())
        if twice:
            raise ValueError(f"user {min(twice, key=str)} has samples in more than one part")
        people.update(users.tolist())
        together = some[np.argsort(codes, kind="stable")]
        begins = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        # A missing label stays −1 while types are still being added.
        place = np.append(vocabulary.translation(some.sequences.event_types, types)[:-1], -1)
        for first, end in _runs(begins, np.asarray(together.sequences.offsets)[begins]):
            group = together[begins[first] : begins[end]]
            seen = observations(group, features, some.sequences.event_types)
            own = place[seen.codes]
            used.update(np.unique(own).tolist())
            of_people = begins[first : end + 1] - begins[first]
            stored.append(store.keep(seen.values, own, seen.offsets, seen.jacobian, of_people))
            sizes.append(end - first)
        n_samples += len(some)
    if features is None:
        raise ValueError("there are no samples")
    known = np.sort(types[sorted(used - {-1})])
    place = vocabulary.translation(types, known)
    events = [Events(one, place) for one in stored]
    return Groups(features, known, events, np.array(sizes, dtype=np.int64), n_samples)


def _runs(begins: Integers, events: Integers) -> Iterator[tuple[int, int]]:
    """Runs of people, none with too many people or, unless it is one person, too many events."""
    first, n = 0, len(begins) - 1
    while first < n:
        end = int(np.searchsorted(events, events[first] + MOST_EVENTS, side="right")) - 1
        end = min(max(end, first + 1), first + MOST_PEOPLE)
        yield first, end
        first = end
