"""The parametric bootstrap: how far off the parameters of a fit may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from keydyn.arrays import Floats, Integers
from keydyn.model.check import surrogates
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.families.family import Family
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.marginals import printed_marginal
from keydyn.model.theta.parameters import ByType, Parameters

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

METHODS = ("percentile", "basic")


@dataclass(frozen=True)
class Bootstrap:
    """Every fitted parameter of a model and of refits to data drawn from it, states matched.

    Attributes
    ----------
    names : (Q rows) part, feature, parameter, before, event, from_state, state of each parameter
    estimate : (Q,) the model's own
    replicates : (R, Q) those of the refits

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> bootstrap = HMM(n_states=1, emission="normal").fit(x).bootstrap(x, n_replicates=20, random_state=0)
    >>> bootstrap.table().columns[-4:].tolist()
    ['estimate', 'standard_error', 'low', 'high']
    """

    names: pd.DataFrame
    estimate: Floats
    replicates: Floats

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of each parameter over the refits, (Q,)."""
        deviation: Floats = self.replicates.std(axis=0, ddof=1)
        return deviation

    @property
    def bias(self) -> Floats:
        """How far the refits' mean is from the model's own value, (Q,)."""
        bias: Floats = self.replicates.mean(axis=0) - self.estimate
        return bias

    def interval(self, level: float = 0.95, method: str = "percentile") -> Floats:
        """Confidence intervals (Q, 2).

        "percentile" has the quantiles of the refits; "basic" mirrors them at the estimate, which takes a bias
        of the estimator out. A probability stays within 0 … 1.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, not {level!r}")
        if method not in METHODS:
            raise ValueError(f"method must be {' or '.join(map(repr, METHODS))}, not {method!r}")
        tail = 0.5 * (1.0 - level)
        bounds: Floats = np.quantile(self.replicates, [tail, 1.0 - tail], axis=0).T
        if method == "basic":
            bounds = 2.0 * self.estimate[:, None] - bounds[:, ::-1]
            probabilities = (self.names["part"] != "emission").to_numpy()
            bounds[probabilities] = np.clip(bounds[probabilities], 0.0, 1.0)
        return bounds

    def table(self, level: float = 0.95, method: str = "percentile") -> pd.DataFrame:
        """One row per parameter: what it is, estimate, standard error, and the bounds `low` and `high`."""
        bounds = self.interval(level, method)
        return self.names.assign(
            estimate=self.estimate, standard_error=self.standard_error, low=bounds[:, 0], high=bounds[:, 1]
        )

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.estimate)} parameters, {len(self.replicates)} refits)"


def parametric_bootstrap(
    model: POHMM,
    sequences: Sequences,
    generator: np.random.Generator,
    n_replicates: int = 200,
    n_jobs: int | None = None,
) -> Bootstrap:
    """Draw data from the model along these event sequences, fit, match the states; many times.

    Which state of a refit is which is known, since the states behind drawn data are: see `match_states`.
    """
    own = model._parameters
    drawn = surrogates.draw_many(own, sequences, generator.spawn(n_replicates))
    refits = surrogates.refit(model, [surrogate.sequences for surrogate in drawn], n_jobs)
    layout = ToldParameters.of(own, surrogates.index_of(own, sequences), model.fixed)
    # All refits saw the same events, so they have one vocabulary.
    index = surrogates.index_of(refits[0]._parameters, sequences)
    places = vocabulary.translation(own.event_types, refits[0].event_types_)
    rows = []
    for refit, surrogate in zip(refits, drawn, strict=True):
        theta = refit._parameters
        lattice = lattices.build(theta, surrogate.sequences.X, index, model._floor)
        posterior = lattices.posterior(lattice).states
        order = match_states(index.codes, theta.n_types, surrogate.states, posterior)
        rows.append(layout.values(relabelled(theta, order), places))
    identity = np.arange(own.n_types)
    return Bootstrap(layout.names(own), layout.values(own, identity), np.stack(rows))


@dataclass(frozen=True)
class ToldParameters:
    """Which parameters the data can tell: of the types that occur, the pairs, and the first types.

    Attributes
    ----------
    starts, types : codes of event types; pairs : (P, 2) codes
    features : for each feature its number, its parameters by type and state, and those it has once
    """

    starts: Integers
    types: Integers
    pairs: Integers
    features: list[tuple[int, tuple[str, ...], tuple[str, ...]]]

    @classmethod
    def of(cls, parameters: Parameters, index: EventIndex, fixed: object) -> ToldParameters:
        """What is not `fixed` and occurs in the events."""
        held = set(fixed) if isinstance(fixed, (list, tuple, set, frozenset)) else set()
        m, nothing = parameters.n_types, np.empty(0, dtype=np.int64)
        starts = np.unique(index.start_rows)
        pairs = np.stack([index.before, index.after], axis=1)
        types = np.unique(index.codes)
        families = [emission.distribution for emission in parameters.emission]
        return cls(
            nothing if "start" in held else starts[starts < m],
            types[types < m],
            pairs[:0] if "transitions" in held else pairs[(pairs < m).all(axis=1)],
            [] if "emission" in held else [(k, *_cells_and_shared(f)) for k, f in enumerate(families)],
        )

    def values(self, parameters: Parameters, places: Integers) -> Floats:
        """The parameters as one flat array; `places` finds a type in this model's vocabulary."""
        pairs = places[self.pairs]
        parts = [
            parameters.startprob[places[self.starts]].ravel(),
            parameters.transmat_of(pairs[:, 0], pairs[:, 1]).ravel(),
        ]
        for k, cells, shared in self.features:
            params = parameters.emission[k].params
            parts += [params[name][places[self.types]].ravel() for name in cells]
            parts += [params[name][:1, 0] for name in shared]
        return np.concatenate(parts)

    def names(self, parameters: Parameters) -> pd.DataFrame:
        """What each entry of `values` is."""
        labels, states, none = parameters.event_types, range(parameters.n_states), np.nan
        rows: list[tuple[object, ...]] = [
            ("start", none, "startprob", none, labels[w], none, j) for w in self.starts for j in states
        ]
        rows += [
            ("transition", none, "transmat", labels[v], labels[w], i, j)
            for v, w in self.pairs
            for i in states
            for j in states
        ]
        for k, cells, shared in self.features:
            rows += [
                ("emission", k, name, none, labels[w], none, j)
                for name in cells
                for w in self.types
                for j in states
            ]
            rows += [("emission", k, name, none, none, none, none) for name in shared]
        columns = ["part", "feature", "parameter", "before", "event", "from_state", "state"]
        table = pd.DataFrame(rows, columns=columns)
        return table.astype(dict.fromkeys(("feature", "from_state", "state"), "Int64"))


def _cells_and_shared(family: Family) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the parameters estimated for each type and state, and of those estimated once."""
    cells = family.parameters[: family.free_parameters()]
    return cells, family.parameters[len(cells) :] if family.shared_parameters() else ()


def match_states(codes: Integers, n_types: int, states: Integers, posterior: Floats) -> Integers:
    """The order (m, M) of the fitted states, type by type: order[ω, i] is the one that is state i.

    Without smoothing the likelihood stays the same if the states of each type are renumbered apart, so that
    they are matched type by type, to agree as often as they can with those that the data were drawn with.
    `states` (N,) are those behind the data, `posterior` (N, M) is γ under the fitted model. Events of
    unknown type (code m) count for none.
    """
    n_states = posterior.shape[1]
    known = codes < n_types
    rows = codes[known] * n_states + states[known]
    agreement = weighted_sums(rows, n_types * n_states, np.ascontiguousarray(posterior[known]))
    tables = agreement.reshape(n_types, n_states, n_states)
    return np.stack([linear_sum_assignment(table, maximize=True)[1] for table in tables])


def relabelled(parameters: Parameters, order: Integers) -> Parameters:
    """A model with its states renumbered type by type, and its marginals (as printed) computed from them."""
    rows, pairs, chain = np.arange(parameters.n_types)[:, None], parameters.pairs, parameters.chain
    before, after = order[pairs[:, 0]], order[pairs[:, 1]]
    pair = np.arange(len(pairs))[:, None, None]
    startprob = parameters.startprob[rows, order]
    transmat = parameters.transmat[pair, before[:, :, None], after[:, None, :]]
    emission = [e.replace(e.at((rows, order))) for e in parameters.emission]
    marginal = None
    if parameters.has_marginal:
        # π[j] is of all sequences' first events; their types' shares are the chain's.
        start_shares, _ = chain.known()
        marginal = printed_marginal(start_shares @ startprob, pairs, transmat, emission, chain)
    by_type = ByType(startprob, pairs, transmat, emission)
    return Parameters.of(parameters.event_types, by_type, marginal, chain, parameters.smoothing)
