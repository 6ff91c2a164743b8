"""Training data of many models laid out one after the other, against each laid out alone."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM, Sequences
from keydyn.model.data.vocabulary import SINGLE_TYPE
from keydyn.model.families.family import families_of
from keydyn.model.fit.batch import Batch
from tests.model.fit.test_many import items

FAMILIES = families_of(["lognormal", "normal"], 2)


@pytest.fixture
def weighted():
    """Data of many forms, and weights of their sequences."""
    data = items(11, seed=3)
    return data, [np.linspace(0.5, 2.0, len(item)) for item in data]


def test_every_model_has_its_own_part(weighted):
    """Whatever stands in a model's part is what stands there when it is alone; parts leave no gap."""
    data, weights = weighted
    together = Batch.of(data, weights, FAMILIES)
    rules = POHMM(smoothing={"start": "frequency", "transitions": 0.3, "emission": "frequency"})._settings(2)
    chain, least = together.type_chain(rules), together.least_scales(rules)
    sizes = {"sequences_of": 0, "rows_of": 0, "pairs_of": 0, "steps_of": 0}
    n_events = 0
    for b, (item, own) in enumerate(zip(data, weights, strict=True)):
        alone = Batch.of([item], [own], FAMILIES)
        before = dict(sizes)
        for name in sizes:
            assert getattr(together, name)[b] == sizes[name], name
            sizes[name] += int(getattr(alone, name)[-1])
        parts = {
            "codes": (slice(n_events, n_events + item.n_events), before["rows_of"]),
            "steps": (slice(n_events, n_events + item.n_events), before["steps_of"]),
            "offsets": (slice(before["sequences_of"], sizes["sequences_of"] + 1), n_events),
            "weights": (slice(before["sequences_of"], sizes["sequences_of"]), 0),
            "start_rows": (slice(before["sequences_of"], sizes["sequences_of"]), before["rows_of"]),
        }
        for name, (part, shift) in parts.items():
            ours = getattr(together.events, name)[part] - shift
            np.testing.assert_array_equal(ours, getattr(alone.events, name), err_msg=name)
        counts, expected = together.counts(b), alone.counts(0)
        assert counts.event_types.tolist() == expected.event_types.tolist()
        for name in ("pairs", "type_counts", "start_counts", "pair_counts"):
            np.testing.assert_array_equal(getattr(counts, name), getattr(expected, name))
        # Sums over all models are taken in one pass, so that they may differ in their last digit.
        np.testing.assert_allclose(least[before["rows_of"]], alone.least_scales(rules)[0], rtol=1e-14)
        values = slice(n_events, n_events + item.n_events)
        np.testing.assert_array_equal(together.engine_values[values], alone.engine_values)
        rows, pairs = slice(before["rows_of"], sizes["rows_of"]), slice(before["pairs_of"], sizes["pairs_of"])
        own_chain = alone.type_chain(rules)
        np.testing.assert_array_equal(chain.pairs[pairs] - before["rows_of"], own_chain.pairs)
        np.testing.assert_allclose(chain.of_pairs[pairs], own_chain.of_pairs, rtol=1e-14)
        np.testing.assert_allclose(chain.of_types[rows], own_chain.of_types, rtol=1e-14)
        span = together.spans[b] - np.repeat(
            [before[name] for name in ("sequences_of", "rows_of", "pairs_of", "steps_of")], [2, 2, 2, 1]
        )
        np.testing.assert_array_equal(span, alone.spans[0])
        n_events += item.n_events
    for name, size in sizes.items():
        assert getattr(together, name)[-1] == size, name


def test_counts_by_hand(weighted):
    """Types, first types and pairs, counted in loops over labels."""
    data, weights = weighted
    together = Batch.of(data, weights, FAMILIES)
    for b, (item, own) in enumerate(zip(data, weights, strict=True)):
        labels = item.labels().tolist()
        types, starts, pairs = {}, {}, {}
        for s, (first, last) in enumerate(zip(item.offsets[:-1], item.offsets[1:], strict=True)):
            part = labels[first:last]
            for n, label in enumerate(part):
                if label is not None:
                    types[label] = types.get(label, 0.0) + own[s]
                    if n == 0:
                        starts[label] = starts.get(label, 0.0) + own[s]
                    elif part[n - 1] is not None:
                        pair = part[n - 1], label
                        pairs[pair] = pairs.get(pair, 0.0) + own[s]
        if not types:
            continue
        counts = together.counts(b)
        names = counts.event_types.tolist()
        assert names == sorted(types)
        assert dict(zip(names, counts.type_counts, strict=True)) == pytest.approx(types)
        assert {k: v for k, v in zip(names, counts.start_counts, strict=True) if v} == pytest.approx(starts)
        found = {(names[v], names[w]): f for (v, w), f in zip(counts.pairs, counts.pair_counts, strict=True)}
        assert found == pytest.approx(pairs)


def test_the_order_of_pairs_is_known():
    """Few possible pairs are sorted; many come as the data have them."""
    rng = np.random.default_rng(0)
    for m, in_order in ((5, True), (90, False)):
        item = Sequences.from_arrays(rng.lognormal(size=(500, 1)), rng.integers(0, m, 500), [250, 250])
        batch = Batch.of([item], [np.ones(2)], families_of("lognormal", 1))
        codes = batch.pairs[:, 0] * m + batch.pairs[:, 1]
        assert batch.in_order is in_order
        assert bool((np.diff(codes) > 0).all()) is in_order
        assert len(set(codes.tolist())) == len(codes)


def test_to_a_model_without_event_types_an_event_without_one_is_as_any_other():
    X = np.random.default_rng(0).lognormal(5.0, 0.4, (40, 1))
    some = np.where(np.arange(40) % 3 == 0, None, SINGLE_TYPE)
    one, other = (POHMM(tol=1e-3).fit(X, events=events) for events in (some, None))
    np.testing.assert_array_equal(one.history_, other.history_)
    np.testing.assert_array_equal(one.transmat_, other.transmat_)
