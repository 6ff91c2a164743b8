"""The simulation study, small: what is true of it whatever the seed, and what its verdicts say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn import HMM, Sequences
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.simulation import figures
from keydyn.lab.simulation import measurements as simulation
from keydyn.lab.simulation.measurements import TRUTHS, batches, fit_batch, true_model
from keydyn.lab.simulation.report import errors, run_simulation, slopes, verdicts, with_residuals


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    parts = Parts(tmp_path_factory.mktemp("parts"))
    return run_simulation(["keystrokes"], (500, 8000), 40, 1, parts)["keystrokes"]


def test_one_row_per_parameter_and_sample(found):
    """12 emission parameters and 18 steps of a POHMM, 4 and 2 of an HMM; 40 samples of 2 lengths."""
    counts = found.estimates.groupby(["scenario", "part"]).size() / (40 * 2)
    expected = {(s, p): n for s in (1, 2) for p, n in (("emission", 12), ("transition", 18))}
    expected |= {(s, p): n for s in (3, 4) for p, n in (("emission", 4), ("transition", 2))}
    assert counts.to_dict() == expected
    assert len(found.accuracies) == 4 * 2 * 40
    assert not found.estimates.isna().any().any()


def test_scenarios_1_to_3_are_consistent_and_4_is_biased(found):
    """A consistent estimate shows a share of bias of χ²/40 with 40 samples, and a tenth that N leaves.

    It is above one half with a chance of 6e-5. The bias of scenario 4 is that of an HMM fitted to far more
    events.
    """
    table_of_verdicts = verdicts(found.estimates).set_index(["scenario", "part"])
    assert list(table_of_verdicts.index) == [
        (s, part) for s in (1, 2, 3, 4) for part in ("emission", "transition")
    ]
    assert (table_of_verdicts.loc[[1, 2, 3], "verdict"] == "consistent").all()
    # Known to 0.02 in scenarios 1 and 2, over ln 16.
    np.testing.assert_allclose(table_of_verdicts.loc[[1, 2], "slope"], -0.5, atol=0.1)
    assert (table_of_verdicts.loc[[1, 2], "bias_share"] < 0.25).all()
    assert table_of_verdicts.loc[[4], "verdict"].str.startswith("biased: ").all()
    truth = true_model()
    X, _, _ = truth.sample(60_000, random_state=3)
    limit = HMM(emission="normal", tol=1e-2).fit(Sequences.from_arrays(X))
    table = errors(found.estimates)
    own = table[(table["scenario"] == 4) & (table["n"] == 8000)].set_index("parameter")
    bias = limit.emission_[0].loc[0] - truth.to_hmm().emission_[0].loc[0]
    for j in (0, 1):
        row = own.loc[f"mean[{j}]"]
        assert row["bias"] == pytest.approx(bias[j], abs=5 * row["bias_error"] + 2.0)


def test_hidden_states_are_found_as_well_as_they_can_be(found):
    means = found.accuracies[found.accuracies["n"] == 8000].groupby("scenario")[["accuracy", "best"]].mean()
    # No estimate beats the true parameters by more than chance: 320,000 events, a standard error of 0.0006.
    assert (means["accuracy"] < means["best"] + 0.005).all()
    assert (means["best"] - means["accuracy"])[[1, 2]].max() < 0.01
    assert (means["best"] - means["accuracy"])[4] > 0.1


def test_residuals_are_a_share_of_the_largest_error(found):
    table = with_residuals(found.estimates)
    largest = table["residual"].abs().groupby([table["scenario"], table["parameter"]]).max()
    assert (largest == 1.0).all()
    one = table[(table["scenario"] == 1) & (table["parameter"] == "mean[0|a]")]
    error = (one["estimate"] - one["true"]).to_numpy()
    np.testing.assert_allclose(one["residual"], error / np.abs(error).max())


def test_errors_and_slopes_by_hand():
    """Errors of ±1, ±0.1 at N = 100 and 10,000: a slope of −½."""
    rows = [
        ("t", 1, "emission", "mean[0]", n, sample, 5.0 + sign * size, 5.0)
        for n, size in ((100, 1.0), (10_000, 0.1))
        for sample, sign in enumerate((1.0, -1.0))
    ]
    columns = ["truth", "scenario", "part", "parameter", "n", "sample", "estimate", "true"]
    table = pd.DataFrame(rows, columns=columns)
    found = errors(table)
    np.testing.assert_allclose(found["rmse"], [1.0, 0.1])
    np.testing.assert_allclose(found["bias"], 0.0, atol=1e-15)
    np.testing.assert_allclose(found["residual_deviation"], [np.sqrt(2.0), np.sqrt(0.02)])
    assert slopes(found)["slope"].item() == pytest.approx(-0.5)
    assert verdicts(table)["verdict"].item() == "consistent"
    shifted = table.assign(estimate=table["estimate"] + 3.0)
    verdict = verdicts(shifted)["verdict"].item()
    assert verdict == "biased: mean[0] by +3.0 ms (+60%)"


def test_pieces_can_be_done_apart_and_give_the_same(found):
    parts = [fit_batch(p, n_jobs=2) for p in batches("keystrokes", [500], 40, (1, 4), 1, events=20 * 500)]
    assert len(parts) == 2
    together = pd.concat([part.estimates for part in parts])
    keys = ["scenario", "sample", "parameter"]
    mine = together.sort_values(keys)["estimate"].to_numpy()
    whole = found.estimates[(found.estimates["n"] == 500) & found.estimates["scenario"].isin((1, 4))]
    np.testing.assert_allclose(mine, whole.sort_values(keys)["estimate"], rtol=1e-9)


def test_samples_share_one_event_sequence_and_differ():
    batch = next(batches("keystrokes", [50], 3, (1,), 0))
    truth = true_model()
    drawn = simulation._draw(truth, truth, batch)
    assert all(sample.sequences.codes is drawn[0].sequences.codes for sample in drawn)
    assert len({float(sample.sequences.X[0, 0]) for sample in drawn}) == 3


@pytest.mark.parametrize("name", [*TRUTHS, "random-3"])
def test_true_models(name):
    model = true_model(name)
    assert model.startprob_.shape == (3, 2)
    assert (model.emission_[0].loc[:, 0] < model.emission_[0].loc[:, 1]).all()


def test_progress_counts_up_to_the_whole(tmp_path):
    progress = []
    parts = Parts(tmp_path, show_progress=lambda _, share: progress.append(share))
    run_simulation(["keystrokes"], (20, 40), 2, 0, parts)
    # Shares are of the work done before each call: of 480 events here, the last one fits 40.
    assert progress == sorted(progress)
    assert progress[0] == 0.0
    assert progress[-1] == pytest.approx(1.0 - 40 / 480)


def test_what_cannot_be_simulated():
    with pytest.raises(ValueError, match="there is no true model 'x'"):
        true_model("x")


def test_figures(found, tmp_path):
    table = errors(found.estimates)
    figures.draw_residuals(table, tmp_path / "residuals.png")
    figures.draw_errors(table, tmp_path / "errors.pdf")
    figures.draw_accuracy(found.accuracies, tmp_path / "accuracy.png")
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())
    # One scenario alone is drawn too.
    figures.draw_residuals(table[table["scenario"] == 2], tmp_path / "one.png")
