"""Models laid out one after the other, for online filters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keydyn.arrays import Floats, Integers, plain
from keydyn.model.engine.densities import CUSTOM, FIRST, KIND, ON_LOG_SCALE
from keydyn.model.engine.online_step import TOGETHER, Models
from keydyn.model.families.compiled import features_of
from keydyn.model.families.family import Family, Params
from keydyn.model.theta.parameters import SMALL_TABLE, Parameters
from keydyn.model.theta.smoothing_weights import transition_weights


def feature_table(families: tuple[Family, ...]) -> Floats:
    """(K, 4) what the online step must know of each feature: see the columns in `engine.online_step`.

    What values a family may have that is not compiled, it says itself.
    """
    features = features_of(families)
    bounds = np.array([[family.lowest, family.highest] for family in families])
    bounds[features[:, KIND] == CUSTOM] = -np.inf, np.inf
    return np.column_stack([features[:, KIND], features[:, ON_LOG_SCALE], bounds])


def laid_out(thetas: Sequence[Parameters]) -> Models:
    """These models, which have the same states and features, one after the other.

    The transitions of all pairs of types are laid out if they are few; otherwise a pair is searched for.
    """
    start = _joined([theta.start for theta in thetas])[..., None]
    cells = _joined([theta.cells for theta in thetas])
    n_codes = np.array([len(theta.start) for theta in thetas])
    if (n_codes**2).sum() <= SMALL_TABLE:
        sizes = np.repeat(n_codes, n_codes)
        transitions = _joined([theta.laid_out_steps for theta in thetas])
        return Models(start, cells, transitions, np.cumsum(sizes) - sizes, np.empty((0, 3)))
    begins = np.cumsum([0] + [len(theta.transitions) for theta in thetas])[:-1]
    first = [_first_steps(theta) + begin for theta, begin in zip(thetas, begins, strict=True)]
    spare = np.empty((TOGETHER, *thetas[0].transitions.shape[1:]))
    later = [np.append(theta.pairs[:, 1], np.full(2 * theta.n_types + 1, -1)) for theta in thetas]
    return Models(
        start,
        cells,
        np.concatenate([*(theta.transitions for theta in thetas), spare])[..., None],
        np.concatenate([*first, *later]),
        _joined([_unseen_weights(theta) for theta in thetas]),
    )


def custom_parameters(thetas: Sequence[Parameters], features: Floats) -> dict[int, Params]:
    """The parameters of the features that are not compiled, (R, M) each, by number of the feature."""
    found = {}
    for k in np.flatnonzero(features[:, KIND] == CUSTOM).tolist():
        family, first = thetas[0].families[k], features_of(thetas[0].families)[k, FIRST]
        found[k] = {
            name: np.concatenate([theta.emissions[:, first + p] for theta in thetas])
            for p, name in enumerate(family.parameters)
        }
    return found


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One after the other; a single one is not copied."""
    return plain(arrays[0]) if len(arrays) == 1 else np.concatenate(arrays)


def _first_steps(theta: Parameters) -> Integers:
    """Where the pairs of each earlier type begin, and, for the unknown type, where the marginals do."""
    return np.searchsorted(theta.pairs[:, 0], np.arange(theta.n_types + 1))


def _unseen_weights(theta: Parameters) -> Floats:
    """(m + 1, 3) what marginals weigh in unseen pairs, by later and by earlier type, and at most together."""
    rule, chain, weights = theta.smoothing.transitions, theta.chain, np.zeros((theta.n_types + 1, 3))
    none = np.zeros(theta.n_types)
    weights[:-1, 0], weights[:-1, 1] = transition_weights(rule, True, none, chain.leaving, chain.entering)
    weights[:, 2] = np.inf if theta.smoothing.published else 1.0
    return weights
