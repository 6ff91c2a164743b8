"""Groups of people, which are processed in turn so that memory does not grow with the number of people."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from keydyn import parallel
from keydyn.arrays import Integers
from keydyn.keystrokes.samples import Samples
from keydyn.model.data import vocabulary
from keydyn.model.data.vocabulary import Types
from keydyn.population.cells import Observations, feature_order, observations

Arrays = tuple[NDArray[Any], ...]
Progress = Callable[[float], object]
Task = TypeVar("Task")
Result = TypeVar("Result")
# The most people of a group, and its most events unless it is one person.
MOST_PEOPLE, MOST_EVENTS = 250, 250_000


@dataclass(frozen=True, eq=False)
class Held:
    """Arrays in memory."""

    arrays: Arrays

    def load(self) -> Arrays:
        return self.arrays


@dataclass(frozen=True)
class Filed:
    """Arrays in a file, which every worker with access to the folder can read.

    The file holds only their bytes. NumPy's own format has a header that is parsed as Python, and in some
    versions of Python parsing fails now and then if several threads do it at once (CPython issue 106905).
    """

    path: Path
    kinds: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]

    def load(self) -> Arrays:
        with open(self.path, "rb") as file:
            return tuple(
                np.fromfile(file, kind, math.prod(shape)).reshape(shape) for kind, shape in self.kinds
            )


Stored = Held | Filed


class Store:
    """Storage of arrays in memory or, if a folder is given, in its files."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._count = 0

    def keep(self, *arrays: NDArray[Any]) -> Stored:
        """Store arrays, to be loaded when they are needed."""
        if self._folder is None:
            return Held(arrays)
        self._count += 1
        path = self._folder / str(self._count)
        with open(path, "wb") as file:
            for array in arrays:
                array.tofile(file)
        return Filed(path, tuple((array.dtype, array.shape) for array in arrays))


@contextmanager
def store(in_memory: bool, parent: str | PathLike[str] | None) -> Iterator[Store]:
    """Open a store; its folder, which only this user can read, is made in `parent` and removed at the end."""
    if in_memory:
        yield Store(None)
        return
    with tempfile.TemporaryDirectory(prefix="keydyn-", dir=parent) as folder:
        yield Store(Path(folder))


class Passes:
    """Passes of functions over all groups; `progress` is called with the share of passes done."""

    def __init__(self, n_jobs: int | None = None, progress: Progress | None = None) -> None:
        self._n_jobs = n_jobs
        self._progress = progress
        self._done = 0
        # The number of passes expected.
        self.total = 1

    def each(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in the order of the tasks."""
        tasks = list(tasks)
        if len(tasks) == 1:
            yield function(tasks[0])
        else:
            yield from parallel.each(function, tasks, n_jobs=self._n_jobs, names=[""] * len(tasks))
        self._done += 1
        if self._progress is not None:
            self._progress(self._done / self.total)

    def sums(self, function: Callable[[Task], tuple[Any, ...]], tasks: Iterable[Task]) -> tuple[Any, ...]:
        """The sums of the results, which are tuples of numbers and arrays."""
        total: tuple[Any, ...] | None = None
        for result in self.each(function, tasks):
            total = result if total is None else tuple(a + b for a, b in zip(total, result, strict=True))
        if total is None:
            raise ValueError("there are no people to learn from")
        return total


@dataclass(frozen=True, eq=False)
class Events:
    """The samples of a group, sorted by person; `place` translates their codes to the vocabulary's."""

    stored: Stored
    place: Integers

    def load(self) -> tuple[Observations, Integers]:
        """Load the events, and the sample with which each person begins, (U + 1,)."""
        values, codes, offsets, logs, begins = self.stored.load()
        return Observations(values, self.place[codes], offsets, logs), begins


@dataclass(frozen=True, eq=False)
class Groups:
    """All people, in groups."""

    # Those of all samples together
    features: tuple[str, ...]
    vocabulary: Types
    # One per group
    events: list[Events]
    sizes: Integers  # (n,) number of people
    n_samples: int  # of all people

    @property
    def n_people(self) -> int:
        return int(self.sizes.sum())

    @property
    def people(self) -> list[Integers]:
        """The indices of each group's people."""
        return np.split(np.arange(self.n_people), np.cumsum(self.sizes)[:-1])


def gathered(
    samples: Samples | Iterable[Samples], store: Store, features: tuple[str, ...] | None = None
) -> Groups:
    """Gather samples in groups of people, in the order in which people first appear.

    If there are several `Samples`, each is read once and not kept; all samples of a person must be in one of
    them. `features` are those that samples must have, by default those of the first samples.
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
        codes, users = some.people
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
            seen = observations(group, features, place)
            used.update(np.unique(seen.codes).tolist())
            of_people = begins[first : end + 1] - begins[first]
            stored.append(store.keep(seen.values, seen.codes, seen.offsets, seen.logs, of_people))
            sizes.append(end - first)
        n_samples += len(some)
    if features is None:
        raise ValueError("there are no samples")
    known = np.sort(types[sorted(used - {-1})])
    place = vocabulary.translation(types, known)
    events = [Events(one, place) for one in stored]
    return Groups(features, known, events, np.array(sizes, dtype=np.int64), n_samples)


def _runs(begins: Integers, events: Integers) -> Iterator[tuple[int, int]]:
    """Yield runs of people, none with too many people or, unless it is one person, too many events."""
    first, n = 0, len(begins) - 1
    while first < n:
        end = int(np.searchsorted(events, events[first] + MOST_EVENTS, side="right")) - 1
        end = min(max(end, first + 1), first + MOST_PEOPLE)
        yield first, end
        first = end
