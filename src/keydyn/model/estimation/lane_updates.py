"""The maximisation step, the marginals and smoothing of many models at once, compiled.

The formulas of `formulas`, `marginals`, `algorithm` and `smoothing` for two states. What depends on the
events alone, as smoothing weights do, is the same in all lanes.
"""

from __future__ import annotations

import math

from keydyn.arrays import Floats, compiled
from keydyn.model.estimation.densities import standard_height
from keydyn.model.estimation.formulas import NO_MASS, SMALLEST
from keydyn.model.estimation.lanes import HEIGHT0, INVERSE0, LANES, LOC0, Lanes
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.smoothing import NO_RULE
from keydyn.model.estimation.tables import Basis, Rules


@compiled
def maximisation_in_lanes(basis: Basis, rules: Rules, lanes: Lanes) -> None:
    """`maximisation`."""
    expected = lanes.first_occurrence if rules.first_occurrence else lanes.start_sums
    _update_start(expected, lanes.start_sums, rules.count_floor, rules.fixed_start, lanes.start)
    if not rules.fixed_transitions:
        _update_transitions(lanes.transitions, rules.count_floor, lanes.transmat)
    if not rules.fixed_emission:
        _update_emission(rules.density.df, rules.count_floor, lanes)
    lanes.from_type[:] = 0.0
    lanes.to_type[:] = 0.0
    if rules.exact:
        _sum_by_type(basis, lanes.transitions, False, lanes.from_type, lanes.to_type)
    else:
        _sum_by_type(basis, lanes.transmat, True, lanes.from_type, lanes.to_type)
        _any_after_dead_ends(basis.leaving, lanes.from_type, lanes.to_type)
    _normalise_marginals(lanes.from_type, lanes.to_type, lanes.of_all)
    _marginal_emission(basis.prob, rules.exact, lanes)


@compiled
def smooth_in_lanes(basis: Basis, rules: Rules, lanes: Lanes) -> None:
    """`smooth`."""
    n_types = len(basis.prob)
    if n_types == 1:
        return
    if rules.smooth_start != NO_RULE and not rules.fixed_start:
        _blend(basis.keep_start, lanes.start)
    if rules.smooth_transitions != NO_RULE and not rules.fixed_transitions:
        _blend_transitions(basis, lanes.from_type, lanes.to_type, lanes.transmat)
    if rules.smooth_emission != NO_RULE and not rules.fixed_emission:
        for k in range(lanes.loc.shape[0]):
            _blend(basis.keep_emission, lanes.loc[k])
            if math.isinf(rules.density.df[k]):
                _blend(basis.keep_emission, lanes.scale[k])
            else:
                _blend_squares(basis.keep_emission, lanes.scale[k])


@compiled
def cells_in_lanes(df: Floats, loc: Floats, scale: Floats, cells: Floats) -> None:
    """`prepare_cells`: location, 1 / scale and ln f at the location, side by side."""
    for k in range(len(df)):
        height = standard_height(df[k])
        for row in range(len(cells)):
            for j in range(2):
                for lane in range(LANES):
                    cells[row, k, LOC0 + j, lane] = loc[k, row, j, lane]
                    cells[row, k, INVERSE0 + j, lane] = 1.0 / scale[k, row, j, lane]
                for lane in range(LANES):
                    cells[row, k, HEIGHT0 + j, lane] = height - logarithm(scale[k, row, j, lane])


@compiled
def _update_start(expected: Floats, sums: Floats, floor: float, fixed: bool, start: Floats) -> None:
    """`update_start`; the last row is that of all types."""
    n_types = len(start) - 1
    for lane in range(LANES):
        first, second = max(sums[n_types, 0, lane], floor), max(sums[n_types, 1, lane], floor)
        total = first + second
        start[n_types, 0, lane] = first / total if total > 0.0 else 0.5
        start[n_types, 1, lane] = second / total if total > 0.0 else 0.5
    if fixed:
        return
    for row in range(n_types):
        for lane in range(LANES):
            first, second = max(expected[row, 0, lane], floor), max(expected[row, 1, lane], floor)
            total = first + second
            known = total > NO_MASS
            start[row, 0, lane] = first / total if known else start[n_types, 0, lane]
            start[row, 1, lane] = second / total if known else start[n_types, 1, lane]


@compiled
def _update_transitions(expected: Floats, floor: float, transmat: Floats) -> None:
    """`update_transitions`."""
    for pair in range(len(expected)):
        for i in range(0, 4, 2):
            for lane in range(LANES):
                first, second = max(expected[pair, i, lane], floor), max(expected[pair, i + 1, lane], floor)
                total = first + second
                known, scale = total > NO_MASS, 1.0 / total
                transmat[pair, i, lane] = first * scale if known else transmat[pair, i, lane]
                transmat[pair, i + 1, lane] = second * scale if known else transmat[pair, i + 1, lane]


@compiled
def _update_emission(df: Floats, count_floor: float, lanes: Lanes) -> None:
    """`update_normal` or `update_student` of every feature."""
    n_rows, floored, least = lanes.loc.shape[1], count_floor > 0.0, max(count_floor, SMALLEST)
    for k in range(len(df)):
        if not math.isinf(df[k]):
            _update_student(k, count_floor, lanes)
            continue
        for row in range(n_rows - 1):
            for j in range(2):
                for lane in range(LANES):
                    count, mean = lanes.mass[row, j, lane], lanes.mean[row, k, j, lane]
                    known, divisor = floored or count > NO_MASS, max(count, least)
                    found = count * mean / divisor if floored else mean
                    around = lanes.square[row, k, j, lane] + count * (mean - found) ** 2
                    deviation, lowest = math.sqrt(around / divisor), lanes.min_scale[k, lane]
                    before, spread = lanes.loc[k, row, j, lane], lanes.scale[k, row, j, lane]
                    lanes.loc[k, row, j, lane] = found if known else before
                    lanes.scale[k, row, j, lane] = max(deviation, lowest) if known else spread
                    lanes.floored[k, row, j, lane] = 1.0 if known and deviation < lowest else 0.0


@compiled
def _update_student(k: int, count_floor: float, lanes: Lanes) -> None:
    """`update_student`."""
    for row in range(lanes.loc.shape[1] - 1):
        for j in range(2):
            for lane in range(LANES):
                count, lowest = lanes.mass[row, j, lane], lanes.min_scale[k, lane]
                known = lanes.precision[row, k, j, lane] > NO_MASS and count > count_floor
                deviation = math.sqrt(lanes.square[row, k, j, lane] / count)
                before, spread = lanes.loc[k, row, j, lane], lanes.scale[k, row, j, lane]
                lanes.loc[k, row, j, lane] = lanes.mean[row, k, j, lane] if known else before
                lanes.scale[k, row, j, lane] = max(deviation, lowest) if known else spread
                lanes.floored[k, row, j, lane] = 1.0 if known and deviation < lowest else 0.0


@compiled
def _sum_by_type(basis: Basis, matrices: Floats, weighted: bool, from_type: Floats, to_type: Floats) -> None:
    """`sum_by_type`; pairs weigh a[ψ, ω] if `weighted`, else all the same."""
    for pair in range(len(basis.pair_prob)):
        weight = basis.pair_prob[pair] if weighted else 1.0
        before, after = basis.before[pair], basis.after[pair]
        for c in range(4):
            for lane in range(LANES):
                value = matrices[pair, c, lane] * weight
                from_type[before, c, lane] += value
                to_type[after, c, lane] += value


@compiled
def _any_after_dead_ends(leaving: Floats, from_type: Floats, to_type: Floats) -> None:
    """`any_after_dead_ends`."""
    n_types, dead_ends = len(leaving), 0
    for row in range(n_types):
        if leaving[row] == 0.0:
            dead_ends += 1
            from_type[row] = 0.5
    if dead_ends > 0:
        share = dead_ends / n_types / 2
        for row in range(n_types):
            for c in range(4):
                for lane in range(LANES):
                    to_type[row, c, lane] += share


@compiled
def _normalise_marginals(from_type: Floats, to_type: Floats, of_all: Floats) -> None:
    """`normalise_marginals`."""
    of_all[:] = 0.0
    for row in range(len(from_type)):
        for c in range(4):
            for lane in range(LANES):
                of_all[c, lane] += from_type[row, c, lane]
        _normalise_rows(from_type, row)
        _normalise_rows(to_type, row)
    for i in range(0, 4, 2):
        for lane in range(LANES):
            total = of_all[i, lane] + of_all[i + 1, lane]
            of_all[i, lane] = of_all[i, lane] / total if total > 0.0 else 0.5
            of_all[i + 1, lane] = of_all[i + 1, lane] / total if total > 0.0 else 0.5


@compiled
def _normalise_rows(matrices: Floats, row: int) -> None:
    """Both rows of a matrix scaled to add up to one."""
    for i in range(0, 4, 2):
        for lane in range(LANES):
            first, second = matrices[row, i, lane], matrices[row, i + 1, lane]
            total = first + second
            matrices[row, i, lane] = first / total if total > 0.0 else 0.5
            matrices[row, i + 1, lane] = second / total if total > 0.0 else 0.5


@compiled
def _marginal_emission(prob: Floats, exact: bool, lanes: Lanes) -> None:
    """`marginal_emission`."""
    n_types, loc, scale, total = len(prob), lanes.loc, lanes.scale, lanes.total
    for k in range(len(loc)):
        for j in range(2):
            total[:] = 0.0
            for row in range(n_types):
                for lane in range(LANES):
                    total[lane] += lanes.mass[row, j, lane]
            loc[k, n_types, j] = 0.0
            scale[k, n_types, j] = 0.0
            for row in range(n_types):
                for lane in range(LANES):
                    share = _share(prob[row], exact, lanes.mass[row, j, lane], total[lane], n_types)
                    loc[k, n_types, j, lane] += share * loc[k, row, j, lane]
            for row in range(n_types):
                for lane in range(LANES):
                    share = _share(prob[row], exact, lanes.mass[row, j, lane], total[lane], n_types)
                    apart, spread = loc[k, row, j, lane] - loc[k, n_types, j, lane], scale[k, row, j, lane]
                    scale[k, n_types, j, lane] += share * (apart * apart + spread * spread)
            for lane in range(LANES):
                scale[k, n_types, j, lane] = math.sqrt(scale[k, n_types, j, lane])


@compiled
def _share(prob: float, exact: bool, mass: float, total: float, n_types: int) -> float:
    """What a type weighs in a marginal: Π[ω], or its share of γ."""
    of_mass = mass / total if total > 0.0 else 1.0 / n_types
    return of_mass if exact else prob


@compiled
def _blend(keep: Floats, table: Floats) -> None:
    """`blend` towards the last row."""
    for row in range(len(keep)):
        own, other = keep[row], 1.0 - keep[row]
        for j in range(2):
            for lane in range(LANES):
                table[row, j, lane] = own * table[row, j, lane] + other * table[len(keep), j, lane]


@compiled
def _blend_squares(keep: Floats, table: Floats) -> None:
    """`blend` with `squares`."""
    for row in range(len(keep)):
        for j in range(2):
            for lane in range(LANES):
                own, other = table[row, j, lane], table[len(keep), j, lane]
                mixed = keep[row] * (own * own) + (1.0 - keep[row]) * (other * other)
                table[row, j, lane] = math.sqrt(mixed)


@compiled
def _blend_transitions(basis: Basis, from_type: Floats, to_type: Floats, transmat: Floats) -> None:
    """`blend_transitions`."""
    for pair in range(len(basis.weight_before)):
        earlier, later = basis.before[pair], basis.after[pair]
        of_earlier, of_later = basis.weight_before[pair], basis.weight_after[pair]
        own = 1.0 - of_earlier - of_later
        for i in range(0, 4, 2):
            for lane in range(LANES):
                first = own * transmat[pair, i, lane] + of_earlier * from_type[earlier, i, lane]
                first = max(first + of_later * to_type[later, i, lane], 0.0)
                second = own * transmat[pair, i + 1, lane] + of_earlier * from_type[earlier, i + 1, lane]
                second = max(second + of_later * to_type[later, i + 1, lane], 0.0)
                total = first + second
                scale = 1.0 / total
                transmat[pair, i, lane] = first * scale if total > 0.0 else 0.5
                transmat[pair, i + 1, lane] = second * scale if total > 0.0 else 0.5
