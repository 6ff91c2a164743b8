"""The population model: learn from everyone, enrol anyone in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn import files
from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.settings import generator_of
from keydyn.model.data.vocabulary import as_labels
from keydyn.population.chain import posteriors
from keydyn.population.learn.learning import check_parts, learn, learn_more
from keydyn.population.learn.map_reduce import Progress
from keydyn.population.parameters import Parameters
from keydyn.population.person.drawing import drawn, drawn_people
from keydyn.population.saved import TEMPLATE, fingerprint, packed, packed_template, parsed, read
from keydyn.population.score.explaining import explained
from keydyn.population.score.fitted import Learnt, Ready, enrolled, fill_scores, ready_for, seen_of
from keydyn.population.score.kernel import PER_EVENT, PER_FEATURE, PER_SAMPLE, RESIDUALS
from keydyn.population.stream.streams import PopulationStream, PopulationStreams
from keydyn.population.template import Template

SHIPPED = Path(__file__).parent / "shipped.keydyn"


class PopulationModel:
    """What people share, how they differ, and what a sample says of a person.

    Parameters
    ----------
    hidden_states : whether a chain of active and pause, shared by all, tells slow keys from pauses. Scores
        take longer with it.
    without : parts to leave out, to see what they are worth: "low rank", "scales", "slopes", "contexts",
        "tempo", "tails"

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.population import PopulationModel
    >>> samples = Samples.of(make_typists(8, 4))
    >>> people = PopulationModel().fit(samples)
    >>> new = Samples.of(make_typists(2, 4, first_user=100))  # nobody whom the population knows
    >>> templates = [people.enrol(new[new.users == user][:3]) for user in (100, 101)]
    >>> queries = new[new.numbers == 3]
    >>> people.log_likelihoods(templates, queries).shape
    (2, 2)
    """

    def __init__(self, hidden_states: bool = True, without: Sequence[str] = ()) -> None:
        self.hidden_states = hidden_states
        self.without = without

    def __repr__(self) -> str:
        """What it was learnt from, and its SHA-256."""
        if not hasattr(self, "learnt_"):
            return f"PopulationModel(hidden_states={self.hidden_states}, without={tuple(self.without)})"
        return f"<PopulationModel of {self.parameters.n_people} people, {self.sha256}>"

    def fit(
        self,
        samples: Samples | Iterable[Samples],
        n_jobs: int | None = None,
        scratch: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from the samples of two people or more; interrupted, the model is as it was before.

        Parameters
        ----------
        samples : Samples, or an iterable of them
            Everybody's; or parts, each with all samples of some people, which are read one after the other
            and never held in memory together. The result is the same but for rounding.
        n_jobs : int, optional
            Threads, if no engine is in use; None for one, −1 for all cores.
        scratch : path, optional
            Folder for intermediate results that are not held in memory: files that only this user can read,
            removed at the end. By default the system's folder for temporary files. All workers of a cluster
            must see it.
        progress : callable, optional
            Called with the share of the work that is done, from 0 to 1.
        """
        without = check_parts(self.without)
        self._take(learn(samples, self.hidden_states, without, n_jobs, scratch, progress))
        return self

    def partial_fit(
        self,
        samples: Samples | Iterable[Samples],
        n_jobs: int | None = None,
        scratch: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn how people differ from further people; before the first `fit` this is `fit`.

        An approximation: what those before said of each loading counts as one number, and all else (the keys
        that are known, locations, variances, hidden states) stays as it is. Templates must be enrolled anew.
        """
        if not hasattr(self, "learnt_"):
            return self.fit(samples, n_jobs, scratch, progress)
        self._take(learn_more(self.parameters, samples, n_jobs, scratch, progress))
        return self

    def _take(self, parameters: Parameters) -> None:
        # One assignment: other threads see all of it or nothing.
        self.learnt_ = Learnt(parameters, fingerprint(parameters))

    @property
    def _learnt(self) -> Learnt:
        if not hasattr(self, "learnt_"):
            raise ValueError("the population model is not fitted: call fit or load")
        return self.learnt_

    @property
    def parameters(self) -> Parameters:
        """What was learnt."""
        return self._learnt.parameters

    @property
    def sha256(self) -> str:
        """SHA-256 of what was learnt; templates carry it."""
        return self._learnt.sha256

    def enrol(self, samples: Samples) -> Template:
        """One person's template, from one sample up.

        Examples
        --------
        >>> template = people.enrol(new[:1])
        >>> template.n_samples, template.n_events
        (1, 11)
        """
        if len(set(samples.users.tolist())) > 1:
            raise ValueError("enrol takes the samples of one person; these are of several")
        learnt = self._learnt
        return enrolled(learnt, seen_of(learnt.parameters, samples))

    def anyone(self) -> Template:
        """Somebody of whom no sample is known: the population itself."""
        return self._learnt.anyone

    def log_likelihoods(
        self, templates: Sequence[Template], samples: Samples, n_jobs: int | None = None
    ) -> Floats:
        """(n, U) natural log of each sample's density under each template: the sum of its events'."""
        out = np.empty((len(samples), len(templates)))
        self._fill(PER_SAMPLE, templates, samples, out, n_jobs)
        return out

    def event_log_likelihoods(
        self, templates: Sequence[Template], samples: Samples, n_jobs: int | None = None
    ) -> Floats:
        """(N, U) the same of each event, given the earlier ones, as soon as the next key is known."""
        out = np.empty((samples.sequences.n_events, len(templates)))
        self._fill(PER_EVENT, templates, samples, out, n_jobs)
        return out

    def _fill(
        self, what: int, templates: Sequence[Template], samples: Samples, out: Floats, n_jobs: int | None
    ) -> None:
        learnt = self._learnt
        learnt.check(templates)
        if len(samples):
            fill_scores(learnt, what, templates, ready_for(learnt, samples), out, n_jobs)

    def ready_for(self, samples: Samples) -> Ready:
        """Samples as the population sees them, which is the first step of all that is asked of them."""
        return ready_for(self._learnt, samples)

    def online(self, templates: Sequence[Template]) -> PopulationStream:
        """Follows a sample that is still being typed, under these templates.

        Examples
        --------
        >>> stream = people.online(templates)
        >>> stream.update([80.0, 100.0], "a")  # a key is judged when the next one is known
        >>> stream.update([95.0, 110.0], "m").shape
        (2,)
        """
        return PopulationStream(self._learnt.parameters, self._learnt.sha256, templates)

    def online_many(self, claimed: Sequence[Template], cohort: Sequence[Template] = ()) -> PopulationStreams:
        """Follows many samples that are still being typed, each under its own template and all of a cohort.

        They advance together or apart, thousands in one call.

        Examples
        --------
        >>> streams = people.online_many(claimed=templates, cohort=templates)
        >>> streams.update([[80.0, 100.0], [95.0, 110.0]], ["a", "a"], [0, 1]).shape
        (2, 3)
        """
        return PopulationStreams(self._learnt.parameters, self._learnt.sha256, claimed, cohort)

    def predict_proba(self, template: Template, samples: Samples) -> Floats:
        """(N, S) probability of the states active and pause at each event, given the whole sample."""
        learnt = self._learnt
        known = learnt.parameters
        e = np.empty((samples.sequences.n_events, len(known.features)))
        ready = ready_for(learnt, samples)
        fill_scores(learnt, RESIDUALS, [template], ready, e, 1)
        return posteriors(known.chain, e, ready.classes, ready.seen.offsets)

    def predict(self, template: Template, samples: Samples) -> Integers:
        """(N,) the more probable hidden state of each event: 0 is active, 1 is a pause."""
        states: Integers = self.predict_proba(template, samples).argmax(axis=1)
        return states

    def explain(self, template: Template, sample: Samples) -> pd.DataFrame:
        """Which keys and features speak for and against the claim; one row per key and feature.

        `log_likelihood` adds up to the sample's score, `evidence` to how much more probable the sample is
        coming from this person than from anyone.

        Examples
        --------
        >>> told = people.explain(templates[0], queries[:1])
        >>> told.columns.tolist()
        ['key', 'feature', 'count', 'log_likelihood', 'evidence']
        """
        return pd.DataFrame(self.explained(template, sample))

    def explained(self, template: Template, sample: Samples) -> dict[str, NDArray[Any]]:
        """The columns of `explain`, without the time that a data frame takes."""
        learnt = self._learnt
        ready = ready_for(learnt, sample)
        terms = []
        for one in (template, learnt.anyone):
            out = np.zeros(ready.y.shape)
            fill_scores(learnt, PER_FEATURE, [one], ready, out, 1)
            terms.append(out)
        return explained(learnt.parameters, ready.seen, *terms)

    def sample(
        self, template: Template, events: Sequence[Any], random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Typing of these keys as the person would do it: one row per key, one column per feature."""
        values = self.typed_by([template], events, generator_of(random_state))[0]
        return pd.DataFrame(values, columns=list(self.parameters.features)).assign(keyname=as_labels(events))

    def typed_by(
        self, templates: Sequence[Template], events: Sequence[Any], random: np.random.Generator | None
    ) -> Floats:
        """(U, N, F) the same keys as each of these people would type them; first intervals are NaN.

        Without a generator nothing is left to chance: every time is the one that is expected.
        """
        learnt = self._learnt
        learnt.check(templates)
        return drawn(learnt.parameters, templates, events, random)

    def draw(self, n: int, random_state: int | np.random.Generator | None = None) -> list[Template]:
        """n people who do not exist, drawn from how the population's people differ, and known exactly.

        Examples
        --------
        >>> drawn = people.draw(3, random_state=0)
        >>> people.sample(drawn[0], list("the "), random_state=0).shape
        (4, 3)
        """
        learnt = self._learnt
        return drawn_people(learnt.parameters, learnt.sha256, n, generator_of(random_state))

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learnt; the file is there in full or not at all.

        Examples
        --------
        >>> people.save("people.keydyn")
        >>> PopulationModel.load("people.keydyn").sha256 == people.sha256
        True
        """
        files.write(path, self.packed())

    def packed(self) -> bytes:
        """The contents of the file that `save` writes."""
        return packed(self.parameters)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote; a `ModelFileError` says what is wrong with any other file."""
        return cls._of(read(path))

    @classmethod
    def parsed(cls, contents: bytes, path: str | PathLike[str]) -> Self:
        """The same of a file's contents; `path` is for messages."""
        return cls._of(parsed(contents, path))

    @classmethod
    def _of(cls, parameters: Parameters) -> Self:
        model = cls(hidden_states=parameters.chain.n_states > 1)
        model._take(parameters)
        return model

    @classmethod
    def shipped(cls) -> Self:
        """The population that comes with keydyn, for those who have nobody to compare with.

        It was learnt from 115 people who typed English on keyboards, and holds nobody's samples; see the page
        "The population that comes with keydyn" of the documentation.

        Examples
        --------
        >>> PopulationModel.shipped().anyone().n_samples
        0
        """
        return cls.load(SHIPPED)

    def save_template(self, template: Template, path: str | PathLike[str]) -> None:
        """Write a person's template; the file is there in full or not at all."""
        files.write(path, self.packed_template(template))

    def packed_template(self, template: Template) -> bytes:
        """The contents of the file that `save_template` writes."""
        self._learnt.check([template])
        return packed_template(template)

    def load_template(self, path: str | PathLike[str]) -> Template:
        """Read what `save_template` wrote; one of another population is refused."""
        return self.parsed_template(files.read(path), path)

    def parsed_template(self, contents: bytes, path: str | PathLike[str]) -> Template:
        """The template that `packed_template` gave; `path` is for messages."""
        template = TEMPLATE.parsed(contents, path)
        learnt = self._learnt
        learnt.check([template])
        known = learnt.parameters
        if len(template.mean) != known.cells.n_cells or len(template.gain) != len(known.features):
            raise files.ModelFileError(f"{path} has a different size from the templates of its population")
        return template
