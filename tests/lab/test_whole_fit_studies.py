"""The studies of fit in full, by their commands: what theory says must come out, and what was published."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab.frame.study_data import load_text
from keydyn.lab.goodness_of_fit.measurements import SurrogateTest, goodness_calls
from keydyn.lab.simulation.measurements import N_VALUES, true_model
from tests.lab.rows import called

runner = CliRunner()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The simulation study as it is published: four scenarios, seven lengths, 400 samples each."""
    out = tmp_path_factory.mktemp("simulation")
    result = runner.invoke(app, ["study", "simulation", "--out", str(out), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    return {
        name: pd.read_csv(out / "tables" / f"{name}.csv") for name in ("simulation", "errors", "accuracy")
    }


@pytest.mark.slow
def test_verdicts_of_the_whole_simulation_study(simulated):
    table = simulated["simulation"].set_index(["scenario", "part"])
    assert (table.loc[[1, 2, 3], "verdict"] == "consistent").all()
    assert table.loc[[4], "verdict"].str.startswith("biased: ").all()
    # With 400 samples the bias of a consistent estimate is a share of χ²/400, and what N leaves.
    assert (table.loc[[1, 2, 3], "bias_share"] < 0.05).all()
    assert (table.loc[[4], "bias_share"] > 0.95).all()


@pytest.mark.slow
def test_errors_fall_with_the_root_of_the_length(simulated):
    """Asymptotic theory: −½. An error of 400 samples is known to 1/√800 = 3.5 %, over a range of ln 31.6."""
    errors = simulated["errors"]
    long = errors[(errors["n"] >= 3000) & errors["scenario"].isin((1, 2, 3))]
    for key, own in long.groupby(["scenario", "part"]):
        curves = [np.log(one[["n", "rmse"]].to_numpy()) for _, one in own.groupby("parameter")]
        slopes = [np.polyfit(*curve.T, 1)[0] for curve in curves]
        assert np.mean(slopes) == pytest.approx(-0.5, abs=0.05), key
    biased = errors[(errors["scenario"] == 4) & (errors["n"] == max(N_VALUES))]
    means = biased[biased["parameter"].str.startswith("mean")]
    # A bias does not fall: it is many standard errors from zero.
    assert (means["bias"].abs() > 20 * means["bias_error"]).any()


def least_errors(loc, scale, n_events):
    """Standard errors of both means and deviations by Fisher's information of a half-and-half mixture.

    All transition probabilities of θ₀ are one half, so that the intervals of a type are independent draws
    from a mixture whose share is unknown too; what else transitions leave open is uncorrelated.
    """
    x = np.linspace(loc[0] - 9 * scale[0], loc[1] + 9 * scale[1], 200_001)
    parts = [stats.norm.pdf(x, m, s) for m, s in zip(loc, scale, strict=True)]
    density = 0.5 * (parts[0] + parts[1])
    by_mean = [0.5 * f * (x - m) / s**2 for f, m, s in zip(parts, loc, scale, strict=True)]
    by_scale = [0.5 * f * ((x - m) ** 2 / s**3 - 1 / s) for f, m, s in zip(parts, loc, scale, strict=True)]
    slopes = np.stack([*by_mean, *by_scale, parts[0] - parts[1]])
    information = np.trapezoid(slopes[:, None] * slopes[None] / density, x)
    return np.sqrt(np.diag(np.linalg.inv(information))[:4] / n_events)


@pytest.mark.slow
def test_errors_are_the_least_possible(simulated):
    """Maximum likelihood is efficient: errors of the longest samples are Cramér and Rao's bound.

    400 samples tell an error to 3.5 %, the number of events of a type in one sequence differs from a third of
    all by less than 1 %: five standard errors.
    """
    emission = true_model().emission_[0]
    own = simulated["errors"]
    own = own[(own["scenario"] == 1) & (own["n"] == max(N_VALUES))].set_index("parameter")["rmse"]
    for w, label in enumerate("abc"):
        least = least_errors(emission.loc[w], emission.scale[w], max(N_VALUES) / 3)
        names = [f"{name}[{j}|{label}]" for name in ("mean", "deviation") for j in (0, 1)]
        np.testing.assert_allclose(own[names], least, rtol=0.18)


@pytest.mark.slow
def test_hidden_states_of_long_samples_are_found_as_by_the_truth(simulated):
    longest = simulated["accuracy"][simulated["accuracy"]["n"] == max(N_VALUES)].set_index("scenario")
    lost = longest["best"] - longest["accuracy"]
    # Four million events were compared: a standard error of 0.0001 each.
    assert lost[[1, 2, 3]].abs().max() < 0.001
    assert lost[4] > 0.1


@pytest.mark.slow
def test_goodness_of_fit_of_all_fable_users(recordings, tmp_path):
    """All 60 users with 100 surrogates: an HMM misfits for many, as published, and the corrected test agrees.

    A right model would be rejected for 3 users of 60, for 10 or more with a chance of 1 in 1000. The
    published ordering, HMM above POHMM, holds for the paper's printed distribution.
    """
    options = ["--dataset", "fable", "--data", str(recordings), "--out", str(tmp_path), "--jobs", "1"]
    result = runner.invoke(app, ["study", "goodness-of-fit", *options])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "tables" / "goodness_of_fit.csv").set_index(["model", "settings"])
    assert (table["users"] == 60).all()
    assert (table["surrogates"] == 100).all()
    assert table.loc["hmm", "rejected"].min() > 10 / 60
    by_marginal = pd.read_csv(tmp_path / "tables" / "marginals.csv").iloc[0]
    assert by_marginal["printed"] < table.loc[("hmm", "published"), "rejected"]
    tests = pd.read_parquet(tmp_path / "tests.parquet")
    # Whole numbers of 101, and never zero.
    assert tests["p_value"].min() == pytest.approx(1 / 101)
    np.testing.assert_allclose(101 * tests["p_value"], np.round(101 * tests["p_value"]))


@pytest.mark.slow
def test_goodness_of_fit_of_all_essay_users(recordings):
    """Published settings with few surrogates: published, the HMM is rejected for every user of long texts."""
    keystrokes = load_text("essay", recordings).keystrokes
    found = called(goodness_calls(keystrokes, "essay", SurrogateTest(39), settings=("published",)))
    rejected = found.assign(rejected=found["p_value"] <= 0.05).groupby("model")["rejected"].mean()
    assert len(found) == 2 * 55
    assert rejected["hmm"] > 0.9
    assert rejected["hmm"] >= rejected["pohmm"]
