"""The population model as a detector: learn from everyone who trains, then enrol anyone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel


@register
class PopulationDetector(Detector):
    """The log-likelihood of a sample under a person that a population model has enrolled.

    `prepare` learns the population, from training samples under every protocol: it would know queries by
    heart. `hidden_states` and `without` are the model's.
    """

    name: ClassVar[str] = "population"
    title: ClassVar[str] = "Population model"
    scores_events: ClassVar[bool] = True
    learns_people: ClassVar[bool] = True

    prepared_people_: PopulationModel

    def __init__(self, hidden_states: bool = True, without: Sequence[str] = ()) -> None:
        self.hidden_states = hidden_states
        self.without = without

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        prepared.prepared_people_ = PopulationModel(self.hidden_states, self.without).fit(everyone)
        return prepared

    def fit(self, samples: Samples) -> Self:
        if not hasattr(self, "prepared_people_"):
            raise ValueError("population needs people to learn from: call prepare before fit")
        self.template_ = self.prepared_people_.enrol(samples)
        return self

    def score(self, samples: Samples) -> Floats:
        scores: Floats = self.prepared_people_.log_likelihoods([self.template_], samples, n_jobs=1)[:, 0]
        return scores

    def score_events(self, samples: Samples) -> Floats:
        scores: Floats = self.prepared_people_.event_log_likelihoods([self.template_], samples, n_jobs=1)[
            :, 0
        ]
        return scores

    @classmethod
    def score_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        people = cls._common_people(templates)
        if people is None:
            return super().score_many(templates, samples)
        # One thread: whoever calls this has handed out templates to threads already.
        return people.log_likelihoods([one.template_ for one in templates], samples, n_jobs=1)

    @classmethod
    def score_events_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        people = cls._common_people(templates)
        if people is None:
            return super().score_events_many(templates, samples)
        return people.event_log_likelihoods([one.template_ for one in templates], samples, n_jobs=1)

    @staticmethod
    def _common_people(templates: Sequence[PopulationDetector]) -> PopulationModel | None:
        """The population that all of the templates belong to, if it is one."""
        people = templates[0].prepared_people_
        return people if all(one.prepared_people_ is people for one in templates) else None
