"""The context-HMM (Forchhammer and Rissanen, 1996)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given
from keydyn.model.data.fit_settings import FitSettings, check_number, is_whole
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.relatives.contexts import Bins, Contexts, Labels, LearntContext, Past, check_context, learnt
from keydyn.model.relatives.parameter_tables import ContextTables, Training, uniform_tables
from keydyn.model.relatives.relative import Relative
from keydyn.model.theta.given import distribution, given_emissions


@dataclass(eq=False, repr=False)
class ContextHMM(Relative):
    """Hidden Markov model whose emission and hidden state at n + 1 depend on contexts r_n and s_n.

    Each context is a function of the emissions up to n: P(x_{n+1} | z_{n+1}, r_n), P(z_{n+1} | z_n, s_n).
    The first event of a sequence has a context of its own, "none yet". Without contexts the model is the HMM.
    `events` is ignored, except that a callable finds them in its `Past`.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : a family's name or a `Family`, or a list with one per feature
    emission_context, transition_context : r and s. A whole number is a number of quantile bins of the last
        value seen, with edges learnt in fitting; 1 or None is no context; `Bins(edges, feature)` has given
        edges. A callable receives a `Past` of N events and returns N labels (text or whole numbers, or None)
    context_feature : the feature that is binned
    memory : number of earlier events that a callable sees
    spread, tol, max_iter : as in `POHMM`, as are all others; `spread_scale="type"` stands for the standard
        deviation in each context

    Attributes
    ----------
    startprob_ : (M,)
    transmat_ : (S, M, M), one matrix for each of `transition_context_.names()`
    emission_ : parameters (R, M), one row for each of `emission_context_.names()`. The last row of either
        table pools all contexts and is used for contexts that no training event had
    emission_context_, transition_context_ : the learnt contexts
    log_likelihood_, history_, n_iter_ : as in `POHMM`, as are all others

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import ContextHMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = ContextHMM(emission_context=2, transition_context=1).fit(x)
    >>> model.emission_context_.names()[0], model.transmat_.shape
    ('up to 143.892', (1, 2, 2))
    """

    emission_context: Any = 3
    transition_context: Any = 3
    _: KW_ONLY
    context_feature: int = 0
    memory: int = 1

    @classmethod
    def from_parameters(
        cls,
        startprob: ArrayLike,
        transmat: ArrayLike,
        emission: Sequence[Any],
        *,
        emission_context: LearntContext,
        transition_context: LearntContext,
        **parameters: Any,
    ) -> Self:
        """A fitted model with these parameters; states keep the given order.

        `transmat` is (S, M, M), and `emission` a list of `(family, loc, scale)` or `(family, {name: array})`
        with arrays (R, M), one row for each name that the context lists. Contexts are `Bins`, `NoContext` or
        `Labels`.
        """
        for context in (emission_context, transition_context):
            if not isinstance(context, LearntContext):
                raise ValueError(f"a context is a Bins, a NoContext or a Labels, not {context!r}")
        start = distribution("startprob", startprob, (None,))
        m = len(start)
        steps = distribution("transmat", transmat, (transition_context.n_tables, m, m))
        theta = ContextTables(start, steps, given_emissions(emission, (emission_context.n_tables, m)))
        own = {"emission_context": emission_context, "transition_context": transition_context}
        return cls._given(theta, (emission_context, transition_context), own, parameters)

    @property
    def emission_context_(self) -> LearntContext:
        return self._contexts[0]

    @property
    def transition_context_(self) -> LearntContext:
        return self._contexts[1]

    @property
    def _memory(self) -> int:  # type: ignore[override]
        """The number of earlier events that a `Past` must have: 0 unless a context is a callable."""
        given = self.emission_context, self.transition_context
        if not any(isinstance(one, Labels) or callable(one) for one in given):
            return 0
        return check_number("memory", self.memory)

    def _settings(self, n_features: int) -> FitSettings:
        for name in ("emission_context", "transition_context"):
            check_context(name, getattr(self, name))
            if isinstance(getattr(self, name), Bins) and getattr(self, name).feature >= n_features:
                raise ValueError(f"{name} bins feature {getattr(self, name).feature}; there are {n_features}")
        if not is_whole(self.context_feature) or not 0 <= self.context_feature < n_features:
            raise ValueError(
                f"context_feature must be the number of a feature, 0 to {n_features - 1}, "
                f"not {self.context_feature!r}"
            )
        check_number("memory", self.memory)
        return super()._settings(n_features)

    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        """Sequences with events if a callable may look at them, otherwise without."""
        if self._memory == 0:
            return super()._as_sequences(X, events, lengths)
        return as_sequences(X, events, lengths)

    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        emission, transition = (
            learnt(given, past, X, event_weights, int(self.context_feature))
            for given in (self.emission_context, self.transition_context)
        )
        return emission, transition

    def _start(
        self,
        evidence: Training,
        contexts: Contexts,
        settings: FitSettings,
        jitter: np.random.Generator | None,
    ) -> ContextTables:
        return uniform_tables(evidence, contexts[0].n_rows, contexts[1].n_rows, settings, jitter)
