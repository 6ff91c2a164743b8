"""A fitted model as a table that people read: in a terminal, and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.data import vocabulary
from keydyn.model.families.family import Emission

if TYPE_CHECKING:
    from keydyn.model.fit.estimator import Estimator

STOPPED = {"tol": "converged", "max_iter": "limit of iterations", "decrease": "no further gain"}
MOST_ROWS = 30
HALF = np.array(0.5)


class Summary:
    """What a fitted model says in a table; `print` shows it, and so do notebooks.

    Attributes
    ----------
    title : the model in a line; facts : how it was fitted, in a line
    columns, rows : a row per event type, the most frequent first, and one for all together
    """

    def __init__(self, title: str, facts: str, columns: list[str], rows: list[list[str]]) -> None:
        self.title, self.facts, self.columns, self.rows = title, facts, columns, rows

    def __repr__(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[c]) for row in table) for c in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if c == 0 else cell.rjust(width)
                for c, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.title, self.facts, "", lines[0], "-" * max(map(len, lines)), *lines[1:]])

    def _repr_html_(self) -> str:
        """For notebooks; names of event types are text, whatever they hold."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + f"<th style='text-align:left'>{escape(row[0])}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        return (
            f"<p><b>{escape(self.title)}</b><br>{escape(self.facts)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def summary_of(model: Estimator, most: int = MOST_ROWS) -> Summary:
    """The summary of a fitted model with at most `most` event types, the most frequent ones."""
    types, n_states = model.event_types_, model.startprob_.shape[1]
    emission = model.emission_
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    names = names or [f"x{k}" if len(emission) > 1 else "x" for k in range(len(emission))]
    columns = ["event type", "share"]
    columns += [f"state {j}" for j in range(n_states)]
    columns += [f"{name}, state {j}" for name in names for j in range(n_states)]
    shares, stationary = model.event_prob_, model.stationary_
    medians = [_median(each) for each in emission]
    order = np.argsort(-shares, kind="stable")[:most]
    single = vocabulary.is_single(types)
    rows = [] if single else [_row(str(types[w]), shares[w], stationary[w], medians, w) for w in order]
    if len(types) > len(order):
        rows.append([f"… {len(types) - len(order)} more", *[""] * (len(columns) - 1)])
    if model._parameters.has_marginal:
        overall = shares @ stationary
        rows.append(_row("all", 1.0, overall, [_median(each) for each in model.marginal_.emission], ...))
    families = ", ".join(dict.fromkeys(each.family for each in emission))
    title = f"{type(model).__name__} with {_counted(n_states, 'state')}, {families}"
    if not single:
        title += f", {_counted(len(types), 'event type')}"
    return Summary(title, _facts(model), columns, rows)


def _median(emission: Emission) -> Floats:
    """The median of each distribution; a mean would hide that times are skewed."""
    return np.asarray(emission.distribution.quantile(HALF, emission.params), dtype=np.float64)


def _row(name: str, share: float, states: Floats, medians: list[Floats], place: Any) -> list[str]:
    values = [f"{value:.4g}" for median in medians for value in np.atleast_1d(median[place])]
    return [name, f"{share:.3f}", *(f"{state:.3f}" for state in states), *values]


def _facts(model: Estimator) -> str:
    facts = [_counted(model.n_parameters_, "free parameter")] if hasattr(model, "n_parameters_") else []
    if hasattr(model, "log_likelihood_"):
        facts.append(f"log-likelihood {model.log_likelihood_:.6g}")
    if hasattr(model, "stop_reason_"):
        reason = STOPPED.get(model.stop_reason_, model.stop_reason_)
        facts.append(f"{_counted(model.n_iter_, 'iteration')}, {reason}")
    return "; ".join([*facts, "shares of event types and states, medians of the features"])


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
