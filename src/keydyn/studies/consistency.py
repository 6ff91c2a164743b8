"""What the simulation study says: residuals, errors, and whether an estimate is consistent (Eq. 37)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.model.arrays import Floats

GROUP = ["truth", "scenario", "part", "parameter"]
# Between the slope of a consistent estimate, −½, and that of a biased one, 0.
SLOPE_BETWEEN = -0.25


def with_residuals(estimates: pd.DataFrame) -> pd.DataFrame:
    """A column `residual`: θ̂ − θ₀ divided by the largest |θ̂ − θ₀| of that parameter over all N (Eq. 37)."""
    error = estimates["estimate"] - estimates["true"]
    keys = [estimates[name] for name in GROUP]
    largest = error.abs().groupby(keys, sort=False).transform("max")
    return estimates.assign(residual=np.where(largest > 0, error / largest.where(largest > 0, 1.0), 0.0))


def errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row a parameter and N: bias, its standard error, rmse, and mean and deviation of the residual."""
    table = with_residuals(estimates)
    table = table.assign(
        error=table["estimate"] - table["true"], square=(table["estimate"] - table["true"]) ** 2
    )
    found = (
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
    return found.assign(rmse=np.sqrt(found["square"])).drop(columns="square")


def slopes(found: pd.DataFrame) -> pd.DataFrame:
    """The slope of ln rmse over ln N of each parameter: −½ for a consistent estimate, 0 for a biased one."""
    rows = [
        {**dict(zip(GROUP, key, strict=True)), "slope": _slope(own["n"].to_numpy(), own["rmse"].to_numpy())}
        for key, own in found.groupby(GROUP, sort=False)
    ]
    return pd.DataFrame(rows)


def verdicts(estimates: pd.DataFrame) -> pd.DataFrame:
    """One row a scenario and part: slope of the error, largest bias at the largest N, and what that means.

    The error of all parameters together is the root mean square of their residuals. An estimate is
    "consistent" if over the upper half of the lengths this falls with a slope below −¼, halfway between −½
    and the 0 of a bias that stays; otherwise "biased", and by how much.
    """
    table = with_residuals(estimates)
    found, rows = errors(estimates), []
    for (truth, scenario, part), own in table.groupby(["truth", "scenario", "part"], sort=False):
        together = np.sqrt((own["residual"] ** 2).groupby(own["n"]).mean())
        n, rmse = together.index.to_numpy(), together.to_numpy()
        upper = slice(len(n) // 2, None) if len(n) > 3 else slice(None)
        slope = _slope(n[upper], rmse[upper])
        last = found[
            (found["truth"] == truth)
            & (found["scenario"] == scenario)
            & (found["part"] == part)
            & (found["n"] == n[-1])
        ]
        scale = _relative_to(last)
        worst = last.loc[(last["bias"].abs() / scale).idxmax()]
        consistent = slope < SLOPE_BETWEEN
        rows.append(
            {
                "truth": truth,
                "scenario": scenario,
                "part": part,
                "slope": slope,
                "n": int(n[-1]),
                "worst_parameter": worst["parameter"],
                "true": worst["true"],
                "bias": worst["bias"],
                "bias_error": worst["bias_error"],
                "verdict": "consistent" if consistent else f"biased: {_how_much(worst)}",
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
    """NaN where there is one length only."""
    if len(n) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n), np.log(np.maximum(rmse, 1e-300)), 1)[0])
