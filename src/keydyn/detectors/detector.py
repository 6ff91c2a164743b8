"""The interface of detectors, and a registry of detectors by name.

A detector learns one user's template from that user's samples and scores other samples against it; a higher
score is more genuine. To add a detector, subclass `Detector`, give it a name and a title, and either decorate
it with `register` or publish it as an entry point of the group `keydyn.detectors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from keydyn.arrays import Floats, Truths
from keydyn.files import write
from keydyn.keystrokes.samples import Samples

ENTRY_POINTS = "keydyn.detectors"
# The modules of the detectors that come with keydyn, in the order in which they are listed.
_FILES = ("distances", "markov", "hybrid", "population_detector", "relatives")
OWN = tuple(f"keydyn.detectors.{name}" for name in _FILES)


class Detector(ABC):
    """Base class of detectors: one user's template, and the scoring of samples against it.

    The parameters are those of the constructor, kept as attributes and never changed, as in scikit-learn:
    `get_params`, `set_params` and `sklearn.base.clone` work as they do there.

    Class attributes
    ----------------
    name : the name on the command line and in files
    title : the name in tables and figures
    scores_events : whether it can score every event of a sample
    learns_people : whether `prepare` learns how people type, and not only scales; it is then given training
        samples only, whatever samples the protocol takes scales from
    stores_templates : whether templates can be written to files and read again

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import detector_names, make_detector
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(3, 8))
    >>> own, others = samples[samples.users == 0], samples[samples.users != 0]
    >>> fitted = [make_detector(name).prepare(samples).fit(own[:6]) for name in detector_names()]
    >>> all(detector.score(own[6:]).mean() > detector.score(others).mean() for detector in fitted)
    True
    """

    name: ClassVar[str]
    title: ClassVar[str]
    scores_events: ClassVar[bool] = False
    learns_people: ClassVar[bool] = False
    stores_templates: ClassVar[bool] = False

    def __repr__(self) -> str:
        """The class and the parameters that differ from their defaults."""
        usual = _parameters(type(self))
        given = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not usual[name]]
        return f"{type(self).__name__}({', '.join(given)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; a `ValueError` names one that does not exist."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same parameters."""
        return type(self)(**self.get_params())

    def prepare(self, everyone: Samples) -> Self:
        """Return a copy that has learnt what it needs from all users, such as scales; by default nothing."""
        return self.__sklearn_clone__()

    @property
    def needs_everyone(self) -> bool:
        """Whether `prepare` learns something, so that templates depend on the other users' samples."""
        return type(self).prepare is not Detector.prepare

    @abstractmethod
    def fit(self, samples: Samples) -> Self:
        """Learn the template from one user's samples."""

    @abstractmethod
    def score(self, samples: Samples) -> Floats:
        """One score per sample, (n,); higher is more genuine."""

    def score_events(self, samples: Samples) -> Floats:
        """One score per event, (N,), in the order of `samples.sequences`."""
        raise ValueError(f"{self.name} cannot score single events")

    def fit_many(self, groups: Sequence[Samples]) -> list[Self]:
        """Fit a fresh copy to each group of samples, each group being of one user.

        By default they are fitted one by one. A detector that is faster with many at once overrides this and
        `batch_size`; its templates must equal those that `fit` gives, and its errors must name the user.
        """
        templates = []
        for samples in groups:
            try:
                templates.append(self.fresh().fit(samples))
            except ValueError as error:
                raise ValueError(f"user {samples.users[0]}: {error}") from error
        return templates

    def batch_size(self, groups: Sequence[Samples]) -> int:
        """The least number of these groups that makes a call of `fit_many` fast; 1 if any number is."""
        return 1

    @classmethod
    def score_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        """Score every sample against every template, (n, U); each column is what `score` gives."""
        return np.stack([template.score(samples) for template in templates], axis=1)

    @classmethod
    def score_events_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        """Score every event against every template, (N, U); each column is what `score_events` gives."""
        return np.stack([template.score_events(samples) for template in templates], axis=1)

    def recognised(self, samples: Samples) -> tuple[Truths, Truths] | None:
        """Masks of events with keys that the template knows, (N,), and in pairs of keys that it knows, (N,).

        The result is None if the detector does not tell keys apart.
        """
        return None

    def save_template(self, path: str | PathLike[str]) -> None:
        """Write the template to a file, in full or not at all."""
        write(path, self.packed_template())

    def packed_template(self) -> bytes:
        """The template as the contents of a file."""
        raise ValueError(f"templates of {self.name} cannot be stored")

    def with_template(self, contents: bytes, path: str | PathLike[str], features: Sequence[str]) -> Self:
        """Return a copy with a template from `packed_template`; a `ValueError` says what is wrong with it.

        `path` is used in messages; `features` are those that the template must have, in alphabetical order.
        """
        raise ValueError(f"templates of {self.name} cannot be stored")

    @property
    def limited(self) -> bool:
        """Whether fitting stopped at the limit of iterations before it converged."""
        return False

    def fresh(self) -> Self:
        """Return an unfitted copy that keeps what `prepare` learnt."""
        copied = self.__sklearn_clone__()
        copied.__dict__.update({k: v for k, v in self.__dict__.items() if k.startswith("prepared_")})
        return copied


_DETECTORS: dict[str, type[Detector]] = {}


@cache
def _parameters(kind: type[Detector]) -> dict[str, Any]:
    """The parameters of a detector's constructor, with their defaults."""
    return {name: one.default for name, one in signature(kind).parameters.items()}


def register(kind: type[Detector]) -> type[Detector]:
    """Register a detector under its name; usable as a decorator.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.detectors import Detector, make_detector, register
    >>> @register
    ... class Tempo(Detector):
    ...     name, title = "tempo", "Tempo"
    ...     def fit(self, samples):
    ...         self.mean_ = np.nanmean(samples.sequences.X)
    ...         return self
    ...     def score(self, samples):
    ...         return np.array([-abs(np.nanmean(one.X) - self.mean_) for one in samples.sequences])
    >>> make_detector("tempo").title
    'Tempo'
    """
    if _DETECTORS.get(kind.name, kind) is not kind:
        raise ValueError(f"there is a detector {kind.name!r} already")
    _DETECTORS[kind.name] = kind
    return kind


def detector_title(name: str) -> str | None:
    """The title of the detector of this name; None if there is no such detector or it has no title.

    A detector that was not registered but given as an object is found, too.
    """
    kind = _DETECTORS.get(name) or _unregistered(name)
    if kind is None:
        # A plug-in that cannot be loaded is reported when its detector is made; it must not make a table of
        # results that took hours fail.
        with suppress(ValueError):
            _load_all()
        kind = _DETECTORS.get(name)
    return getattr(kind, "title", None)


def detector_names() -> tuple[str, ...]:
    """The names of all detectors, including those of installed plug-ins.

    Examples
    --------
    >>> from keydyn.detectors import detector_names
    >>> {"manhattan", "svm", "hmm", "pohmm", "pohmm-recommended", "population"} <= set(detector_names())
    True
    """
    _load_all()
    places = {module: place for place, module in enumerate(OWN)}
    kinds = sorted(_DETECTORS.values(), key=lambda kind: places.get(kind.__module__, len(places)))
    return tuple(kind.name for kind in kinds)


def make_detector(name: str | Detector, **parameters: Any) -> Detector:
    """Make a detector by name; if given a detector, return it as it is.

    Examples
    --------
    >>> from keydyn.detectors import make_detector
    >>> make_detector("k-means", n_clusters=2).n_clusters
    2
    """
    if isinstance(name, Detector):
        if parameters:
            raise ValueError("parameters are for a detector given by its name")
        return name
    if name not in _DETECTORS:
        _load_all()
    if name not in _DETECTORS:
        raise ValueError(f"there is no detector {name!r}; there are {', '.join(detector_names())}")
    return _DETECTORS[name](**parameters)


def _unregistered(name: str) -> type[Detector] | None:
    """Find the class of this name that is nearest to `Detector`, registered or not."""
    generation: list[type[Detector]] = Detector.__subclasses__()
    while generation:
        for kind in generation:
            if getattr(kind, "name", None) == name:
                return kind
        generation = [child for kind in generation for child in kind.__subclasses__()]
    return None


def _load_all() -> None:
    """Import all modules with detectors, keydyn's own and those of plug-ins; they register themselves."""
    for module in OWN:
        import_module(module)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            kind = entry.load()
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"the entry point {entry.name!r} of {ENTRY_POINTS} cannot be loaded: {error}"
            ) from error
        if not (isinstance(kind, type) and issubclass(kind, Detector)):
            raise ValueError(
                f"the entry point {entry.name!r} of {ENTRY_POINTS} is no Detector: {entry.value}"
            )
        register(kind)
