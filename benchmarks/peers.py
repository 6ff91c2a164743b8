"""Other libraries on the same data: a two-state HMM of ln x, from the same start as ours.

They have no event types, so to them all events are of one type. Each `Peer` fits with a fixed number of
iterations, without priors, and returns the log-likelihood of ln x under the parameters it ends with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keydyn import HMM, Sequences

Floats = NDArray[np.float64]


class Start(NamedTuple):
    """Start values, with any leading dimensions: (…, 2), (…, 2, 2), (…, 2, K), (…, 2, K)."""

    startprob: Floats
    transmat: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True)
class Peer:
    """A library: `fit(data, iterations)` and `score_each(data)` return functions that do the work."""

    name: str
    fit: Callable[[list[Sequences], int], Callable[[], Floats]]
    score_each: Callable[[Sequences], Callable[[], Floats]]


def start_of(data: Sequences) -> Start:
    """Our own start values, before any iteration."""
    fixed = ("start", "transitions", "emission")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = HMM(max_iter=1, order_states=False, spread=1.0, fixed=fixed).fit(data)
    return Start(
        begin.startprob_[0],
        begin.transmat_[0, 0],
        np.stack([e.loc[0] for e in begin.emission_], axis=1),
        np.stack([e.scale[0] ** 2 for e in begin.emission_], axis=1),
    )


def hmmlearn_peer(implementation: str) -> Peer:
    """hmmlearn's `GaussianHMM`; `implementation` is "log", its default, or "scaling"."""
    from hmmlearn.hmm import GaussianHMM

    def model(start: Start, iterations: int) -> Any:
        hmm = GaussianHMM(
            2,
            "diag",
            n_iter=iterations,
            tol=-np.inf,
            init_params="",
            implementation=implementation,
            min_covar=0,
            covars_prior=0,
            covars_weight=1,
        )
        hmm.startprob_, hmm.transmat_, hmm.means_, hmm.covars_ = start
        return hmm

    def fit(data: list[Sequences], iterations: int) -> Callable[[], Floats]:
        prepared = [(start_of(item), np.log(item.X), item.lengths) for item in data]

        def run() -> Floats:
            fitted = [model(start, iterations).fit(x, lengths) for start, x, lengths in prepared]
            return np.array([m.monitor_.history[-1] for m in fitted])

        return run

    def score_each(data: Sequences) -> Callable[[], Floats]:
        hmm, parts = model(start_of(data), 1), [np.log(item.X) for item in data]
        return lambda: np.array([hmm.score(part) for part in parts])

    return Peer(f"hmmlearn ({implementation})", fit, score_each)


def dynamax_peer() -> Peer:
    """dynamax's smoother in an EM written by hand: compiled as a whole, over sequences and models at once."""
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import hmm_filter, hmm_smoother

    jax.config.update("jax_enable_x64", True)

    def log_density(x: Any, means: Any, variances: Any) -> Any:
        squares = (x[:, None] - means) ** 2 / variances + jnp.log(2 * jnp.pi * variances)
        return -0.5 * squares.sum(axis=-1)

    def iteration(start: Any, x: Any) -> Any:
        """One model: x is (S, T, K)."""
        smooth = jax.vmap(
            lambda one: hmm_smoother(start.startprob, start.transmat, log_density(one, *start[2:]))
        )(x)
        gamma, first, steps = smooth.smoothed_probs, smooth.initial_probs, smooth.trans_probs
        steps = steps.sum(axis=tuple(range(steps.ndim - 2)))
        weight = gamma.sum(axis=(0, 1))
        means = jnp.einsum("stj,stk->jk", gamma, x) / weight[:, None]
        squares = jnp.einsum("stj,stjk->jk", gamma, (x[:, :, None] - means) ** 2) / weight[:, None]
        new = Start(first.sum(axis=0) / first.sum(), steps / steps.sum(axis=1, keepdims=True), means, squares)
        return new, smooth.marginal_loglik.sum()

    def fit(data: list[Sequences], iterations: int) -> Callable[[], Floats]:
        starts = Start(*(jnp.stack(parts) for parts in zip(*(start_of(d) for d in data), strict=True)))
        values = jnp.stack([np.log(d.X).reshape(len(d), -1, d.n_features) for d in data])

        @jax.jit
        def whole(starts: Any, values: Any) -> Any:
            def one(start: Any, x: Any) -> Any:
                return jax.lax.scan(lambda s, _: iteration(s, x), start, None, length=iterations)[1][-1]

            return jax.vmap(one)(starts, values)

        return lambda: np.asarray(whole(starts, values).block_until_ready())

    def score_each(data: Sequences) -> Callable[[], Floats]:
        start = start_of(data)
        values = jnp.asarray(np.log(data.X).reshape(len(data), -1, data.n_features))

        @jax.jit
        def whole(values: Any) -> Any:
            return jax.vmap(
                lambda x: (
                    hmm_filter(start.startprob, start.transmat, log_density(x, *start[2:])).marginal_loglik
                )
            )(values)

        return lambda: np.asarray(whole(values).block_until_ready())

    return Peer("dynamax (by hand)", fit, score_each)


PEERS: dict[str, Callable[[], Peer]] = {
    "hmmlearn": lambda: hmmlearn_peer("log"),
    "hmmlearn scaling": lambda: hmmlearn_peer("scaling"),
    "dynamax": dynamax_peer,
}


def our_hmm(data: list[Sequences], iterations: int) -> Floats:
    """The log-likelihood of ln x that `keydyn.HMM` reaches, without the factor 1/x of a log-normal."""
    reached = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in data:
            # The last E-step's likelihood, as the others report it.
            model = HMM(max_iter=iterations, tol=0.0, order_states=False, spread=1.0).fit(item)
            reached.append(model.history_[iterations - 1] + np.log(item.X).sum())
    return np.array(reached)
