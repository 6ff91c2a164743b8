"""The population model as a detector: it learns from all people who train, then enrols anyone."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import ClassVar, Self

from keydyn.arrays import Floats, Truths
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel, Template


@register
class PopulationDetector(Detector):
    """The log-likelihood of a sample under a person enrolled with a population model.

    `prepare` learns the population, under every protocol from training samples only: otherwise it would be
    learnt from the queries too. `hidden_states` and `without` are parameters of the model. If a learnt
    `population` is given, nothing further is learnt.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import PopulationDetector
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(6, 4))
    >>> detector = PopulationDetector().prepare(samples).fit(samples[:4])  # of the first person
    >>> own, other = detector.score(samples[:4]), detector.score(samples[4:])
    >>> bool(own.mean() > other.mean())
    True
    """

    name: ClassVar[str] = "population"
    title: ClassVar[str] = "Population model"
    scores_events: ClassVar[bool] = True
    learns_people: ClassVar[bool] = True
    stores_templates: ClassVar[bool] = True
    prepared_people_: PopulationModel
    template_: Template

    def __init__(
        self,
        hidden_states: bool | int = True,
        without: Sequence[str] = (),
        population: PopulationModel | None = None,
    ) -> None:
        self.hidden_states = hidden_states
        self.without = without
        self.population = population

    @property
    def needs_everyone(self) -> bool:
        return self.population is None

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        if self.population is None:
            # Kept by `fresh`.
            prepared.prepared_people_ = PopulationModel(self.hidden_states, self.without).fit(everyone)
        return prepared

    @property
    def people(self) -> PopulationModel:
        """The population that was learnt, or given."""
        people = self.population or getattr(self, "prepared_people_", None)
        if people is None:
            raise ValueError("population needs people to learn from: call prepare before fit")
        return people

    def fit(self, samples: Samples) -> Self:
        self.template_ = self.people.enrol(samples)
        return self

    def anyone(self) -> Self:
        """Return a copy with the template of a person of whom no sample is known."""
        return self.carrying(self.people.anyone())

    def carrying(self, template: Template) -> Self:
        """Return a copy with this template."""
        copied = self.fresh()
        copied.template_ = template
        return copied

    def recognised(self, samples: Samples) -> tuple[Truths, Truths] | None:
        ready, cells = self.people.ready_for(samples), self.people.parameters.cells
        # The interval of a pair of keys that the population knows has a cell of its own.
        return ready.seen.codes < len(cells.vocabulary), ready.typing.cell[:, 0] >= cells.n_keys

    def packed_template(self) -> bytes:
        return self.people.packed_template(self.template_)

    def with_template(self, contents: bytes, path: str | PathLike[str], features: Sequence[str]) -> Self:
        return self.carrying(self.people.parsed_template(contents, path))

    def score(self, samples: Samples) -> Floats:
        return self.score_many([self], samples)[:, 0]

    def score_events(self, samples: Samples) -> Floats:
        return self.score_events_many([self], samples)[:, 0]

    @classmethod
    def score_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        people = cls._common_people(templates)
        if people is None:
            return super().score_many(templates, samples)
        # One thread, because the caller already distributes templates to threads.
        return people.log_likelihoods([one.template_ for one in templates], samples, n_jobs=1)

    @classmethod
    def score_events_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        people = cls._common_people(templates)
        if people is None:
            return super().score_events_many(templates, samples)
        return people.event_log_likelihoods([one.template_ for one in templates], samples, n_jobs=1)

    @staticmethod
    def _common_people(templates: Sequence[PopulationDetector]) -> PopulationModel | None:
        """The population that all templates share, if they share one."""
        people = templates[0].people
        return people if all(one.people is people for one in templates) else None
