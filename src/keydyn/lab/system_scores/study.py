"""The options of `keydyn evaluate --scores`, and the plan that evaluates the files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.exit_codes import UsageError, checking_options
from keydyn.lab.frame.study import Facts, Plan
from keydyn.progress import working

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.evaluation.scored_claims import ScoredClaims
    from keydyn.lab.frame.resuming import Parts

TABLES = ("systems", "rates", "costs", "conventions", "compared", "attacks")
FIGURES = ("tippett", "calibration", "ape", "epc", "attacks")


def _option(name: str, text: str, **more: Any) -> Any:
    return typer.Option(name, help=text, rich_help_panel="Scores of other systems", **more)


@dataclass(frozen=True)
class ScoreOptions:
    """The options for files of scores."""

    scores: Annotated[
        list[str] | None,
        _option(
            "--scores",
            "File of scores instead of recordings; repeatable. bob's four columns (claimed, real, sample, "
            "score) or CSV, PyEER's lists as GENUINE,IMPOSTOR, or scores.parquet of a study.",
            metavar="FILE",
        ),
    ] = None
    comparisons: Annotated[
        Path | None,
        _option(
            "--comparisons",
            "The Keystroke Verification Challenge's list of comparisons; --scores then names predictions, "
            "one per line.",
        ),
    ] = None
    distances: Annotated[
        bool, _option("--distances", "A lower score is more genuine; by default a higher one is.")
    ] = False
    ratios: Annotated[
        bool,
        _option("--ratios", "Scores are natural-log likelihood ratios: report actual costs and calibration."),
    ] = False
    prior: Annotated[float, _option("--prior", "Probability that a claim is genuine, for DCF and Cllr.")] = (
        0.5
    )
    miss_cost: Annotated[
        float, _option("--miss-cost", "What it costs to reject a genuine claim, for DCF.")
    ] = 1.0
    match_cost: Annotated[float, _option("--match-cost", "What it costs to accept an impostor, for DCF.")] = (
        1.0
    )


def plan(given: ScoreOptions, seed: int, stated: dict[str, dict[str, str]] | None = None) -> Plan[Any]:
    """Read the files of scores; the report depends on the claims only.

    With `stated`, the facts that only people know, the standard report is written too.
    """
    from keydyn.evaluation.rates.detection_cost import DetectionCost
    from keydyn.lab.system_scores.report import digests, score_table

    with checking_options():
        cost = DetectionCost(given.prior, given.miss_cost, given.match_cost)
    systems = _read(given)

    def work(_: Parts) -> tuple[pa.Table, None]:
        return score_table(systems), None

    def facts(_: tuple[pa.Table, None]) -> Facts:
        return {
            "seed": seed,
            "systems": list(systems),
            "data": digests(given.scores or [], given.comparisons),
            "cost": asdict(cost),
            "ratios": given.ratios,
            "distances": given.distances,
            **({} if stated is None else {"standard": {"stated": stated}}),
        }

    return Plan(work, facts)


def _read(given: ScoreOptions) -> dict[str, ScoredClaims]:
    from keydyn.evaluation.score_files.reading import read_scores

    systems: dict[str, ScoredClaims] = {}
    for source in given.scores or ():
        with working(f"reading {source}"):
            read = read_scores(source, given.comparisons, given.distances)
        for name, claims in read.items():
            if name in systems:
                raise UsageError(f"two systems are called {name}; rename one of the files")
            systems[name] = claims
    return systems
