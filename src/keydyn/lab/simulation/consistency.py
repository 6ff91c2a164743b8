"""What the simulation study says: residuals, errors, and whether an estimate is consistent (Eq. 37)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Floats

GROUP = ["truth", "scenario", "part", "parameter"]
# The share of bias in the mean squared error from which an estimate counts as biased.
BIASED_FROM = 0.5


def with_residuals(estimates: pd.DataFrame) -> pd.DataFrame:
    """A column `residual`: θ̂ − θ₀ divided by the largest |θ̂ − θ₀| of that parameter over all N (Eq. 37)."""
    error = estimates["estimate"] - estimates["true"]
    keys = [estimates[name] for name in GROUP]
    largest = error.abs().groupby(keys, sort=False).transform("max")
    return estimates.assign(residual=np.where(largest > 0, error / largest.where(largest > 0, 1.0), 0.0))


def errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row per parameter and N: bias, its standard error, rmse, and mean and deviation of the residual."""
    table = with_residuals(estimates)
    table = table.assign(
        error=table["estimate"] - table["true"], square=(table["estimate"] - table["true"]) ** 2
    )
    summary = (
        table.groupby([*GROUP, "n"], sort=False)
        .agg(
            true=("true", "first"),
            bias=("error", "mean"),
            bias_error=("error", "sem"),
            square=("square", "mean"),
            residual_mean=("residual", "mean"),
            residual_deviation=("residual", "std"),
            samples=("error", "size"),
        )
        .reset_index()
    )
    return summary.assign(rmse=np.sqrt(summary["square"])).drop(columns="square")


def slopes(error_table: pd.DataFrame) -> pd.DataFrame:
    """The slope of ln rmse over ln N of each parameter: −½ for a consistent estimate, 0 for a biased one."""
    rows = [
        {
            **dict(zip(GROUP, key, strict=True)),
            "slope": _slope(parameter_errors["n"].to_numpy(), parameter_errors["rmse"].to_numpy()),
        }
        for key, parameter_errors in error_table.groupby(GROUP, sort=False)
    ]
    return pd.DataFrame(rows)


def verdicts(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and part: how the error of all parameters together develops, and what that means.

    `slope` is that of its root mean square, in units of each parameter's largest error. `bias_share` is how
    much of its mean square at the largest N is bias rather than scatter: nearly nothing for a consistent
    estimate, nearly all for a biased one. The verdict is "consistent" below one half and "biased" otherwise,
    with the parameter whose bias is largest relative to its true value (a probability's, relative to one).
    """
    error_table, rows = errors(estimates), []
    for (truth, scenario, part), group in error_table.groupby(["truth", "scenario", "part"], sort=False):
        square = group["residual_mean"] ** 2 + group["residual_deviation"] ** 2 * (
            1.0 - 1.0 / group["samples"]
        )
        together = np.sqrt(square.groupby(group["n"]).mean())
        n = int(group["n"].max())
        last = group[group["n"] == n]
        share = float((last["residual_mean"] ** 2).sum() / max(square[group["n"] == n].sum(), 1e-300))
        worst = last.iloc[int(np.argmax((last["bias"].abs() / _relative_to(last)).to_numpy()))]
        rows.append(
            {
                "truth": truth,
                "scenario": scenario,
                "part": part,
                "slope": _slope(together.index.to_numpy(), together.to_numpy()),
                "n": n,
                "bias_share": share,
                "worst_parameter": worst["parameter"],
                "true": worst["true"],
                "bias": worst["bias"],
                "bias_error": worst["bias_error"],
                "verdict": "consistent" if share < BIASED_FROM else f"biased: {_how_much(worst)}",
            }
        )
    return pd.DataFrame(rows).sort_values(["truth", "scenario", "part"], ignore_index=True)


def _relative_to(last: pd.DataFrame) -> pd.Series:
    """What a bias is measured by: the parameter itself, or one for a probability."""
    return last["true"].abs().where(last["part"] == "emission", 1.0)


def _how_much(worst: pd.Series) -> str:
    if worst["part"] == "emission":
        return f"{worst['parameter']} by {worst['bias']:+.1f} ms ({worst['bias'] / worst['true']:+.0%})"
    return f"{worst['parameter']} by {worst['bias']:+.3f}"


def _slope(n: Floats, rmse: Floats) -> float:
    """The slope of ln rmse over ln N; NaN if there is only one length."""
    if len(n) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n), np.log(np.maximum(rmse, 1e-300)), 1)[0])
