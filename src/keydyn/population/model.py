"""The population model: learn from many people, then enrol a person in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from keydyn import files
from keydyn.arrays import Floats, Integers
from keydyn.datasets.simulated.keyboard import KEYS
from keydyn.datasets.simulated.typed_keys import copied_keys
from keydyn.keystrokes.samples import Names, Samples, families_of
from keydyn.model.data.fit_settings import generator_of
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import as_labels
from keydyn.population.chain import posteriors
from keydyn.population.drawing import drawn, drawn_people
from keydyn.population.learn.groups import Progress
from keydyn.population.learn.rounds import check_parts, learn, learn_more
from keydyn.population.saved import (
    MOST_STATES,
    PEOPLE,
    TEMPLATE,
    fingerprint,
    packed,
    packed_people,
    packed_template,
    parsed,
    read,
)
from keydyn.population.score.fitted import Fitted, Named, Ready, SideBySide
from keydyn.population.score.kernel import Asked
from keydyn.population.shared_parameters import SharedParameters, Template
from keydyn.population.stream.streams import PopulationStream, PopulationStreams

if TYPE_CHECKING:
    import pandas as pd

SHIPPED = Path(__file__).parent / "shipped.keydyn"
SHIPPED_PEOPLE = Path(__file__).parent / "shipped_people.keydyn"


class PopulationModel:
    """Model of the typing of many people: what they share and how they differ.

    SharedParameters
    ----------
    hidden_states : whether a chain of two states, active and pause, which all people share, tells slow keys
        from pauses; or its number of states, all but the first being pauses. Scoring takes longer with it.
    without : parts to leave out, to measure their worth: "low rank", "scales", "slopes", "contexts", "tempo",
        "tails"

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.population import PopulationModel
    >>> samples = Samples.of(make_typists(8, 4))
    >>> people = PopulationModel().fit(samples)
    >>> new = Samples.of(make_typists(2, 4, first_user=100))  # strangers to the population
    >>> templates = [people.enrol(new[new.users == user][:3]) for user in (100, 101)]
    >>> queries = new[new.numbers == 3]
    >>> people.log_likelihoods(templates, queries).shape
    (2, 2)
    """

    def __init__(self, hidden_states: bool | int = True, without: Sequence[str] = ()) -> None:
        self.hidden_states = hidden_states
        self.without = without

    def __repr__(self) -> str:
        """The number of people learnt from, and the beginning of the SHA-256."""
        if not hasattr(self, "fitted_"):
            return f"PopulationModel(hidden_states={self.hidden_states}, without={tuple(self.without)})"
        return f"<PopulationModel of {self.parameters.n_people} people, {self.sha256[:12]}…>"

    def fit(
        self,
        samples: Samples | Iterable[Samples],
        n_jobs: int | None = None,
        scratch: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from the samples of two or more people; if interrupted, the model stays as it was.

        SharedParameters
        ----------
        samples
            The samples of all people; or parts, each with all samples of some people, which are read one
            after the other and never held in memory together. Results differ only by rounding.
        n_jobs
            Number of threads, if no engine is in use; None for one, −1 for all cores.
        scratch
            Folder for intermediate results that are not held in memory: files that only this user can read,
            removed at the end. By default the system's folder for temporary files. All workers of a cluster
            need access to it.
        progress
            Called with the share of the work that is done, from 0 to 1.
        """
        without = check_parts(self.without)
        self._take(learn(samples, self._n_states(), without, n_jobs, scratch, progress))
        return self

    def partial_fit(
        self,
        samples: Samples | Iterable[Samples],
        n_jobs: int | None = None,
        scratch: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn how people differ from further people; an unfitted model is fitted as by `fit`.

        This is an approximation: the evidence of earlier people about each loading counts as one number, and
        everything else (known keys, locations, variances, hidden states) stays as it is. Templates must be
        enrolled again.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(samples, n_jobs, scratch, progress)
        self._take(learn_more(self.parameters, samples, n_jobs, scratch, progress))
        return self

    def _n_states(self) -> int:
        """The number of states to learn; 1 for no hidden states."""
        if isinstance(self.hidden_states, bool):
            return 2 if self.hidden_states else 1
        most = f"at most {MOST_STATES}"
        if not isinstance(self.hidden_states, int) or not 1 <= self.hidden_states <= MOST_STATES:
            raise ValueError(f"hidden_states must be True, False or {most}, not {self.hidden_states!r}")
        return self.hidden_states

    def _take(self, parameters: SharedParameters) -> None:
        # One assignment: other threads see all of it or nothing.
        self.fitted_ = Fitted(parameters, fingerprint(parameters))

    @property
    def _fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise ValueError("the population model is not fitted: call fit or load")
        return self.fitted_

    @property
    def parameters(self) -> SharedParameters:
        """The fitted parameters."""
        return self._fitted.parameters

    @property
    def sha256(self) -> str:
        """SHA-256 of the fitted parameters; templates carry it."""
        return self._fitted.sha256

    def enrol(self, samples: Samples) -> Template:
        """Make one person's template from one or more samples.

        Examples
        --------
        >>> template = people.enrol(new[:1])
        >>> template.n_samples, template.n_events
        (1, 11)
        """
        if len(set(samples.users.tolist())) > 1:
            raise ValueError("enrol takes the samples of one person; these are of several")
        fitted = self._fitted
        return fitted.enrolled(fitted.parameters.seen(samples))

    def enrol_each(self, samples: Samples) -> list[Template]:
        """Make one template per user of the samples, in the order in which users first appear."""
        return self._fitted.enrolled_each(samples)

    def anyone(self) -> Template:
        """The template of a person without samples: the population itself."""
        return self._fitted.anyone

    def side_by_side(self, templates: Sequence[Template]) -> SideBySide:
        """Put templates side by side once, so that `log_likelihoods` of many samples, one by one, is faster.

        Examples
        --------
        >>> together = people.side_by_side(templates)
        >>> people.log_likelihoods(together, queries[:1]).shape
        (1, 2)
        """
        return self._fitted.side_by_side(templates)

    def log_likelihoods(
        self, templates: Sequence[Template] | SideBySide, samples: Samples, n_jobs: int | None = None
    ) -> Floats:
        """(n, U) natural log of each sample's density under each template, the sum over its events."""
        asked = Asked(samples=np.empty((len(samples), len(templates))))
        return self._scored(templates, samples, asked, n_jobs).samples

    def event_log_likelihoods(
        self, templates: Sequence[Template], samples: Samples, n_jobs: int | None = None
    ) -> Floats:
        """(N, U) natural log of each event's density given earlier events and the next key."""
        asked = Asked(events=np.empty((samples.sequences.n_events, len(templates))))
        return self._scored(templates, samples, asked, n_jobs).events

    def score_terms(
        self, templates: Sequence[Template], samples: Samples, beside: SideBySide | None = None
    ) -> tuple[Floats, Floats]:
        """Log-likelihoods, (n, U + C), and the term that each value adds to them, (N, F, U), in one pass.

        There are terms for the U templates, but not for the C templates in `beside`. The terms of an event
        add up to its log-density; that of a missing value is 0. `evidence` sums terms under a person and
        `anyone` by key.

        Examples
        --------
        >>> beside = people.side_by_side(templates)
        >>> scores, terms = people.score_terms([templates[0], people.anyone()], queries[:1], beside)
        >>> scores.shape, terms.shape
        ((1, 4), (11, 2, 2))
        >>> bool(abs(terms.sum() - scores[0, :2].sum()) < 1e-8)
        True
        """
        N, F, U = samples.sequences.n_events, len(self.parameters.features), len(templates)
        scores = np.empty((len(samples), U + (0 if beside is None else len(beside))))
        asked = self._scored(templates, samples, Asked(samples=scores, terms=np.empty((N, F, U))), 1, beside)
        return asked.samples, asked.terms

    def _scored(
        self,
        templates: Sequence[Template] | SideBySide,
        samples: Samples,
        asked: Asked,
        n_jobs: int | None,
        beside: SideBySide | None = None,
    ) -> Asked:
        fitted = self._fitted
        if len(samples) == 0:
            fitted.check(templates)
            return asked
        return fitted.score(templates, fitted.ready(samples), asked, beside, n_jobs)

    def ready_for(self, samples: Samples) -> Ready:
        """Convert samples to the population's form, the first step of all scoring."""
        return self._fitted.ready(samples)

    def check_fits(self, template: Template) -> None:
        """A `ValueError` if the template has not the size of this population's."""
        if not self._fitted.fits(template):
            raise ValueError("the template has a different size from those of its population")

    def online(self, templates: Sequence[Template]) -> PopulationStream:
        """A stream that scores a sample under these templates while it is being typed.

        Examples
        --------
        >>> stream = people.online(templates)
        >>> stream.update([80.0, 100.0], "a")  # a key is judged when the next one is known
        >>> stream.update([95.0, 110.0], "m").shape
        (2,)
        """
        return PopulationStream(self._fitted, templates)

    def online_many(self, claimed: Sequence[Template], cohort: Sequence[Template] = ()) -> PopulationStreams:
        """Streams that score many samples while they are being typed, each for its own template and a cohort.

        Streams advance together or apart, thousands in one call.

        Examples
        --------
        >>> streams = people.online_many(claimed=templates, cohort=templates)
        >>> streams.update([[80.0, 100.0], [95.0, 110.0]], ["a", "a"], [0, 1]).shape
        (2, 3)
        """
        return PopulationStreams(self._fitted, claimed, cohort)

    def predict_proba(self, template: Template, samples: Samples) -> Floats:
        """(N, S) probability of each state, active then pauses, at each event, given the whole sample."""
        fitted = self._fitted
        N, F = samples.sequences.n_events, len(fitted.parameters.features)
        asked, ready = Asked(residuals=np.empty((N, F, 1))), fitted.ready(samples)
        e = fitted.score([template], ready, asked).residuals[..., 0]
        return posteriors(fitted.parameters.chain, e, ready.typing.classes, ready.seen.offsets)

    def predict(self, template: Template, samples: Samples) -> Integers:
        """(N,) the most probable hidden state of each event: 0 is active, others are pauses."""
        states: Integers = self.predict_proba(template, samples).argmax(axis=1)
        return states

    def explain(self, template: Template, sample: Samples) -> pd.DataFrame:
        """Explain which keys and features speak for and against the claim, in one row per key and feature.

        `log_likelihood` adds up to the sample's score, `evidence` to the log-likelihood ratio of this person
        and anyone.

        Examples
        --------
        >>> told = people.explain(templates[0], queries[:1])
        >>> told.columns.tolist()
        ['key', 'feature', 'count', 'log_likelihood', 'evidence']
        """
        import pandas as pd

        return pd.DataFrame(self.explained(template, sample))

    def explained(self, template: Template, sample: Samples) -> dict[str, NDArray[Any]]:
        """The columns of `explain` as arrays, which are faster to make than a data frame."""
        _, terms = self.score_terms([template, self.anyone()], sample)
        return self.evidence(sample, terms)

    def evidence(self, sample: Samples, terms: Floats) -> dict[str, NDArray[Any]]:
        """The columns of `explain`, from the terms of `score_terms` under a person and under `anyone`."""
        fitted = self._fitted
        return fitted.explained(fitted.ready(sample).seen, terms)

    def strongest(self, sample: Samples, terms: Floats, most: int) -> tuple[list[Named], list[Named]]:
        """The strongest `evidence` for the person, and the strongest for anyone else, strongest first."""
        fitted = self._fitted
        return fitted.strongest(fitted.ready(sample).seen, terms, most)

    def sample(
        self, template: Template, events: Sequence[Any], random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw a person's typing of these keys: one row per key, one column per feature."""
        import pandas as pd

        values = self.typed_by([template], events, generator_of(random_state))[0]
        return pd.DataFrame(values, columns=list(self.parameters.features)).assign(keyname=as_labels(events))

    def typed_by(
        self, templates: Sequence[Template], events: Sequence[Any], random: np.random.Generator | None
    ) -> Floats:
        """Draw (U, N, F) values of the same keys as typed by each of these people; first intervals are NaN.

        Without a generator nothing is random: every value is the expected one.
        """
        fitted = self._fitted
        fitted.check(templates)
        return drawn(fitted.parameters, templates, events, random)

    def draw(self, n: int, random_state: int | np.random.Generator | None = None) -> list[Template]:
        """Draw the exact templates of n people who do not exist and differ as the population's people do.

        Examples
        --------
        >>> drawn = people.draw(3, random_state=0)
        >>> people.sample(drawn[0], list("the "), random_state=0).shape
        (4, 3)
        """
        fitted = self._fitted
        return drawn_people(fitted.parameters, fitted.sha256, n, generator_of(random_state))

    def retyped(
        self,
        templates: Sequence[Template],
        n_samples: int,
        n_keys: int,
        random_state: int | np.random.Generator | None = None,
    ) -> Samples:
        """Draw samples of English passages as typed by each of these people, who are users 0, 1, ….

        Examples
        --------
        >>> retyped = PopulationModel.shipped().retyped(PopulationModel.shipped_people()[:3], 2, 50, 0)
        >>> len(retyped), sorted(set(retyped.users.tolist()))
        (6, [0, 1, 2])
        """
        random = generator_of(random_state)
        texts = np.array(KEYS, dtype=object)[copied_keys(n_samples, n_keys)]
        typed = [self.typed_by(templates, keys.tolist(), random) for keys in texts]
        names: Names = [(user, n) for user in range(len(templates)) for n in range(n_samples)]
        X = np.concatenate([one[user] for user in range(len(templates)) for one in typed])
        features = sorted(self.parameters.features)
        X = X[:, [self.parameters.features.index(name) for name in features]]
        types, codes = np.unique(texts.astype(str), return_inverse=True)
        codes, offsets = np.tile(codes.ravel(), len(templates)), np.arange(len(names) + 1) * n_keys
        return Samples(names, Sequences(X, codes, types, offsets, tuple(features)), families_of(features))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted parameters; the file is written completely or not at all.

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
        """Make a population from a file's contents; `path` is for messages."""
        return cls._of(parsed(contents, path))

    @classmethod
    def _of(cls, parameters: SharedParameters) -> Self:
        n_states = parameters.chain.n_states
        model = cls(hidden_states=n_states if n_states > 2 else n_states == 2)
        model._take(parameters)
        return model

    @classmethod
    def shipped(cls) -> Self:
        """Load the population that comes with keydyn, for use without recordings of other people.

        It was learnt from 115 people who typed English on keyboards, and holds no samples; see the page
        "The population that comes with keydyn" of the documentation.

        Examples
        --------
        >>> PopulationModel.shipped().anyone().n_samples
        0
        """
        return cls.load(SHIPPED)

    @classmethod
    def shipped_people(cls) -> list[Template]:
        """Load the templates of the people from whom the shipped population was learnt, without names.

        Examples
        --------
        >>> len(PopulationModel.shipped_people())
        115
        """
        return cls.shipped().parsed_people(files.read(SHIPPED_PEOPLE), SHIPPED_PEOPLE)

    def packed_people(self, templates: Sequence[Template]) -> bytes:
        """The contents of a file with the templates of many people, rounded to three digits."""
        self._fitted.check(templates)
        return packed_people(self.sha256, templates)

    def parsed_people(self, contents: bytes, path: str | PathLike[str]) -> list[Template]:
        """Read templates from what `packed_people` returned; `path` is for messages."""
        templates = PEOPLE.parsed(contents, path)
        self._fitted.check(templates)
        if not all(map(self._fitted.fits, templates)):
            raise files.ModelFileError(f"{path} has a different size from the templates of its population")
        return templates

    def save_template(self, template: Template, path: str | PathLike[str]) -> None:
        """Write a person's template; the file is written completely or not at all."""
        files.write(path, self.packed_template(template))

    def packed_template(self, template: Template) -> bytes:
        """The contents of the file that `save_template` writes."""
        self._fitted.check([template])
        return packed_template(template)

    def load_template(self, path: str | PathLike[str]) -> Template:
        """Read what `save_template` wrote; a template of another population is refused."""
        return self.parsed_template(files.read(path), path)

    def parsed_template(self, contents: bytes, path: str | PathLike[str]) -> Template:
        """Read a template from what `packed_template` returned; `path` is for messages."""
        template = TEMPLATE.parsed(contents, path)
        fitted = self._fitted
        fitted.check([template])
        if not fitted.fits(template):
            raise files.ModelFileError(f"{path} has a different size from the templates of its population")
        return template
