"""A system's figures against plain definitions, people drawn one by one, and thresholds chosen by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.rates.chosen_elsewhere import (
    WEIGHTS,
    chosen_elsewhere,
    nearest_threshold,
    weighted_thresholds,
)
from keydyn.evaluation.rates.confidence import Rate, user_weights
from keydyn.evaluation.rates.detection_cost import DetectionCost, actual_dcf, min_dcf
from keydyn.evaluation.rates.error_curve import ErrorCurve, equal_error_rate
from keydyn.evaluation.rates.identification import identification
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr
from keydyn.evaluation.rates.system_figures import CONVENTION_TITLES, COST_TITLES, RATE_TITLES, SystemFigures
from keydyn.evaluation.scored_claims import ScoredClaims


def made_claims(users: int = 12, samples: int = 4, seed: int = 0) -> ScoredClaims:
    """Claims of every sample to be of every user; genuine scores are higher by 3."""
    random = np.random.default_rng(seed)
    typist = np.repeat(np.arange(users), samples * users)
    claimed = np.tile(np.arange(users), users * samples)
    score = random.normal(np.where(claimed == typist, 3.0, 0.0) + random.normal(0, 0.5, users)[claimed], 1.0)
    rows = pd.DataFrame({"claimed": claimed, "real": typist, "score": score})
    return ScoredClaims.of(rows.assign(sample=np.repeat(np.arange(users * samples), users) % samples))


def test_samples_of_two_people_with_one_name_are_two() -> None:
    claims = made_claims()
    assert claims.trials == (48, 48)
    assert len(claims) == 48 * 12
    genuine, impostor = claims.scores
    assert (len(genuine), len(impostor)) == (48, 48 * 11)


def test_scores_by_user_are_those_of_a_plain_search() -> None:
    claims = made_claims(5, 3)
    who, genuine, impostor = claims.by_user
    for u, own, others in zip(who, genuine, impostor, strict=True):
        rows = [k for k in range(len(claims)) if claims.claimed[k] == u]
        assert own.tolist() == sorted(claims.score[k] for k in rows if claims.typist[k] == u)
        assert others.tolist() == sorted(claims.score[k] for k in rows if claims.typist[k] != u)


def test_every_figure_is_its_definition_and_every_interval_that_of_people_drawn() -> None:
    """Few scores, so that all of them are thresholds of the replicates: equal but for rounding."""
    claims, cost = made_claims(6, 3), DetectionCost(0.3, 1.0, 2.0)
    figures = SystemFigures(claims, cost, replicates=40, seed=3)
    both = claims.scores
    plain = {"min_dcf": min_dcf, "actual_dcf": actual_dcf}
    definitions = {
        "eer": equal_error_rate,
        "hull_eer": lambda g, i: ErrorCurve.of(g, i).hull.eer,
        **{name: lambda g, i, one=one: one(g, i, cost) for name, one in plain.items()},
        "cllr": lambda g, i: cllr(g, i, cost.prior),
        "min_cllr": lambda g, i: min_cllr(g, i, cost.prior),
    }
    _, genuine, impostor = claims.by_user
    drawn = [np.repeat(np.arange(6), counts.astype(int)) for counts in user_weights(6, 40, 3)]
    pools = [[np.concatenate([part[u] for u in who]) for part in (genuine, impostor)] for who in drawn]
    for name, definition in definitions.items():
        found = {**figures.rates, **figures.costs}[name]
        assert found.value == pytest.approx(definition(*both), rel=1e-12)
        ends = np.quantile([definition(*pool) for pool in pools], [0.025, 0.975])
        assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-9), name


def test_all_titles_have_a_figure() -> None:
    figures = SystemFigures(made_claims(), replicates=20)
    assert [*figures.rates] == [*RATE_TITLES]
    assert [*figures.conventions] == [*CONVENTION_TITLES]
    assert [*figures.costs] == [*COST_TITLES]
    assert figures.rates["fnmr_at_fmr_1"].text() == "not supported by 48 trials"
    assert {*SystemFigures(made_claims(), ratios=False, replicates=20).costs} == {"min_dcf", "min_cllr"}


def test_the_half_total_error_is_that_of_thresholds_chosen_on_the_other_half() -> None:
    claims = made_claims(9, 5, seed=4)
    chosen = np.random.default_rng(7).permutation(np.arange(9))[:4]
    half = np.isin(np.arange(9), chosen).astype(int)
    wrong = np.zeros(2)
    total = np.zeros(2)
    inside = [(half[claims.claimed] == one) & (half[claims.typist] == one) for one in (0, 1)]
    for one in (0, 1):
        other = claims.where(inside[1 - one])
        scores = np.sort(other.score)[::-1]
        gaps = [abs((other.scores[1] >= t).mean() - (other.scores[0] < t).mean()) for t in scores]
        place = int(np.argmin(gaps))
        threshold = scores[place : place + 2].mean()
        genuine, impostor = claims.where(inside[one]).scores
        wrong += [(genuine < threshold).sum(), (impostor >= threshold).sum()]
        total += [len(genuine), len(impostor)]
    found = chosen_elsewhere(claims, nearest_threshold, seed=7)
    assert found is not None
    assert found.rate().value == pytest.approx((wrong / total).mean(), rel=1e-12)
    assert found.rate().low <= found.rate().value <= found.rate().high


def test_the_expected_performance_curve_weighs_both_errors() -> None:
    curve = ErrorCurve.of(*made_claims(9, 5).scores)
    for weight, threshold in zip(WEIGHTS, weighted_thresholds(curve), strict=True):
        errors = weight * curve.fmr + (1 - weight) * curve.fnmr
        genuine, impostor = made_claims(9, 5).scores
        there = weight * (impostor >= threshold).mean() + (1 - weight) * (genuine < threshold).mean()
        assert there == pytest.approx(errors.min(), abs=1e-12)


def test_too_few_people_choose_no_threshold() -> None:
    assert chosen_elsewhere(made_claims(2, 3), nearest_threshold) is None
    assert "hter" not in SystemFigures(made_claims(2, 3), replicates=20).rates


def test_without_people_there_are_figures_but_no_intervals() -> None:
    scores = made_claims().scores
    figures = SystemFigures(ScoredClaims.without_people(*scores))
    assert figures.rates["eer"].value == equal_error_rate(*scores)
    assert figures.rates["eer"].low is None
    assert figures.costs["cllr"].text(2) == f"{cllr(*scores):.2f}"
    assert not {"hter", "rank_1"} & {*figures.rates}
    with pytest.raises(ValueError, match="no impostor scores"):
        SystemFigures(ScoredClaims.without_people(np.ones(2), np.ones(0)))


def test_identification_needs_all_comparisons() -> None:
    claims = made_claims()
    figures = SystemFigures(claims, replicates=20)
    best = [np.argmax(claims.score[first : first + 12]) for first in range(0, len(claims), 12)]
    right = np.array(best) == claims.typist[::12]
    assert figures.rates["rank_1"].value == pytest.approx(right.mean(), rel=1e-12)
    assert claims.matrix is not None
    assert identification(claims.matrix).accuracy.value == figures.rates["rank_1"].value
    without = claims.where(np.arange(len(claims)) != 5)
    assert "rank_1" not in SystemFigures(without, replicates=20).rates


def test_attacks_are_no_impostors() -> None:
    frame = pd.DataFrame(
        [("a", "a", 1, 3.0, ""), ("a", "b", 2, 1.0, ""), ("b", "b", 2, 3.0, ""), ("a", "c", 3, 2.9, "robot")],
        columns=["claimed", "real", "sample", "score", "attack"],
    )
    claims = ScoredClaims.of(frame)
    assert claims.attacks == ("robot",)
    assert claims.scores[1].tolist() == [1.0]
    assert claims.trials == (2, 1)


def test_thirty_errors_make_a_rate_precise() -> None:
    assert Rate(0.03, trials=1000).precise
    assert not Rate(0.029, trials=1000).precise
    assert not Rate(None, trials=10).precise
