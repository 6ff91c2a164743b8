"""The measures of one sample by their formulas, written plainly, in the order of `MEASURES`."""

from itertools import pairwise

import numpy as np

MOST, FAR, OUT, DEVIATIONS, LEAST_SPREAD = 3.0, 6.0, 2.5, 1.4826, 0.05


def measures_by_formula(sample):
    """All measures of one sample; the fields are those of `Seen`."""
    y = np.column_stack([about_keys(column, sample.key, 2.0) for column in sample.y.T])
    middle = known_median(y)
    deviation = np.maximum(DEVIATIONS * known_median(np.abs(y - middle)), LEAST_SPREAD)
    z = (y - middle) / deviation
    keys = np.where(sample.known, sample.key, -1).tolist()
    pairs = [None, *(pair if min(pair) >= 0 else None for pair in pairwise(keys))]
    distances, leaning = own(sample)
    near = neighbours(np.nan_to_num(np.clip(z, -MOST, MOST)))
    found = [*spread(z, deviation), *distances, *around(sample), *contexts(sample), *near, *leaning]
    for context in ([None if key < 0 else key for key in keys], pairs):
        found += repeats(sample.times, context)
    return np.array([*found, *overlaps(sample)])


def about_keys(values, key, prior):
    """Values without the sum of those of their key, divided by how many they are and the prior."""
    means = {k: np.nansum(values[key == k]) / (np.isfinite(values[key == k]).sum() + prior) for k in set(key)}
    return values - np.array([means[k] for k in key])


def known_median(values):
    columns = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.median(column) if len(column) else 0.0 for column in columns])


def spread(z, deviation):
    found = []
    for column, size in zip(z.T, deviation, strict=True):
        there = column[np.isfinite(column)]
        n = max(len(there), 1)
        tails = 0.5 * np.log(np.sum(np.clip(there, -FAR, FAR) ** 2) / n + 0.05)
        sides = [np.sqrt(np.sum(side > OUT) / n + 0.01) for side in (-there, there)]
        found += [np.log(size), tails, np.sum(np.clip(there, -MOST, MOST)) / n, *sides]
    return found


def around(sample):
    """Slopes and correlations with what pairs of keys, and wider contexts, lead to expect."""
    found = []
    for y, pair, wide in zip(sample.y.T, sample.pair.T, sample.wide.T, strict=True):
        pair_known = np.where(np.isfinite(y + wide), pair, np.nan)
        for value, expected in ((y + wide + pair, pair_known), (y + wide, wide)):
            found += regression(*(about_keys(one, sample.key, 0.5) for one in (value, expected)))
    return found


def contexts(sample):
    """Slopes with what each wider context leads to expect."""
    effects = [(sample.y[:, f], effect) for f in range(2) for effect in sample.effects[:, f].T]
    return [regression(y + effect, effect)[0] for y, effect in effects]


def own(sample):
    """How far times are from the person's own, and how they follow the times around them."""
    r = np.clip(np.nan_to_num(sample.own), -3.0, 3.0)
    (t, h), slopes = r.T, sample.slopes
    parents = ((later(t, 1), later(h, 1), later(h, 2)), (t, later(h, 1), later(t, 1)))
    distances, leaning = [], []
    for f in range(2):
        column = sample.own[:, f]
        there = column[np.isfinite(column)]
        away = there - there.mean() if len(there) else there
        n = max(len(there), 1)
        distances.append(0.5 * np.log(np.sum(np.minimum(away**2, MOST**2)) / n + 0.05))
        leaning += regression(column, slopes[f] @ np.array(parents[f]))
    return distances, leaning


def later(values, n):
    return np.concatenate([np.zeros(n), values])[: len(values)]


def regression(value, expected):
    there = np.isfinite(value) & np.isfinite(expected)
    if not there.any():
        return [0.0, 0.0]
    v = np.clip(value[there] - value[there].mean(), -MOST, MOST)
    e = expected[there] - expected[there].mean()
    return [v @ e / (e @ e + 2.0), v @ e / np.sqrt((e @ e + 1.0) * (v @ v + 1.0))]


def neighbours(z):
    def correlation(a, b, apart):
        together = np.sum(a[apart:] * b[: len(b) - apart])
        return together / np.sqrt((a @ a + 1.0) * (b @ b + 1.0))

    t, h = z.T
    sizes_t, sizes_h = (np.where(one == 0.0, 0.0, np.abs(one) - 0.8) for one in (t, h))
    return [
        *(correlation(one, one, apart) for one in (t, h) for apart in (1, 2, 3)),
        *(sum(correlation(one, one, apart) for apart in range(4, min(11, len(t)))) for one in (t, h)),
        *(correlation(t, h, apart) for apart in range(3) if apart < len(t)),
        *([0.0] if len(t) < 3 else []),
        correlation(h, t, 1),
        correlation(sizes_h, sizes_h, 1),
        correlation(sizes_t, sizes_h, 0),
    ]


def repeats(times, context):
    different = np.unique(times[np.isfinite(times)])
    gaps = sorted(gap for gap in np.diff(different) if gap > 0.01)
    step = max(1.0, gaps[len(gaps) // 4]) if gaps else 1.0
    found = []
    for column in times.T:
        every = column[np.isfinite(column)]
        last, equal_more, differ = {}, [], []
        for now, name in zip(column, context, strict=True):
            then = last.get(name, np.nan)
            if name is not None and np.isfinite(then) and np.isfinite(now):
                equal = abs(then - now) < 0.5
                alike = np.sum((every >= then - 0.5) & (every < then + 0.5)) - 1 - equal
                equal_more.append(equal - 2.0 * min(alike / max(len(every) - 2, 1), 0.5))
                differ.append(np.log((abs(then - now) + step) / np.sqrt(then * now)) + 1.5)
            last[name] = now
        found += [sum(equal_more) / (len(differ) + 4.0), sum(differ) / (len(differ) + 4.0)]
    return found


def overlaps(sample):
    times, expected = sample.times, sample.x - sample.y * sample.scale
    nested, again, over, usual, odd = [], [], [], [], []
    for n in range(1, len(times)):
        before, (interval, hold) = times[n - 1, 1], times[n]
        if np.isnan(before) or np.isnan(interval) or sample.modifier[n - 1]:
            continue
        over.append(before > interval)
        nested.append(before > interval + hold)
        again.append(over[-1] and sample.key[n] == sample.key[n - 1])
        usual.append(expected[n - 1, 1] - expected[n, 0])
        odd.append(sample.x[n - 1, 1] - sample.x[n, 0] - usual[-1])
    n = max(len(over), 1)
    three = [a > b + c for a, b, c in zip(times[:-2, 1], times[1:-1, 0], times[2:, 0], strict=True)]
    squares = np.sum(np.clip(np.array(odd) - sum(odd) / n, -2.0, 2.0) ** 2)
    return [
        *(np.sqrt(sum(one) / n + 0.003) for one in (nested, again, three)),
        sum(over) / n,
        *regression(2.0 * np.array(over, dtype=float), np.clip(usual, -2.0, 2.0)),
        0.5 * np.log(squares / n + 0.01),
        np.sqrt(np.mean(times[:, 0] < 25.0) + 0.003),
    ]
