"""keydyn fit, score, identify, verify and watch: recognition on files in the schema.

Exit codes: 0 done (verify, watch: all accepted), 1 something is rejected, 2 wrong use or wrong data.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.recording_options import (
    CleanOption,
    ColumnsOption,
    FileArgument,
    Reading,
    SeparatorOption,
    SortOption,
    UnitOption,
)
from keydyn.terminal import JsonOption, fail_clearly, print_json, progress_bar, show_table

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.enrolment import Enrolled

ModelsOption = Annotated[Path, typer.Option("--models", help="Folder that `keydyn fit` wrote.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write the table to this CSV file too.")]


@fail_clearly
def fit(
    file: FileArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder for the models.")],
    detector: Annotated[str, typer.Option(help="hmm, pohmm or pohmm-recommended.")] = "pohmm",
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    min_samples: Annotated[int, typer.Option(min=1, help="Samples that each user must have.")] = 2,
    jobs: Annotated[int, typer.Option(min=-1, help="Threads; -1 or 0 for all cores.")] = 1,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Enrol: fit a model to each user's samples, and find the thresholds for verify and watch.

    Examples:
    `keydyn fit typing.csv --out models/`

    `keydyn fit phone.csv --out models/ --sensors pressure,x,y --unit s`
    """
    from keydyn.enrolment import enrol, n_fits

    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    used = tuple(name.strip() for name in sensors.split(",") if name.strip())
    with progress_bar("fitting", n_fits(keystrokes), hidden=as_json) as progress:
        enrolled = enrol(keystrokes, detector, used, min_samples, jobs or -1, progress)
    enrolled.save(out)
    rows = [
        {
            "user": str(user),
            "samples": int(enrolled.n_samples[u]),
            "log-likelihood a key": model.log_likelihood_ / _n_keys(keystrokes, user),
            "iterations": model.n_iter_,
            "stopped by": model.stop_reason_,
            "threshold": _plain(enrolled.thresholds[u]),
        }
        for u, (user, model) in enumerate(zip(enrolled.users.tolist(), enrolled.models, strict=True))
    ]
    if as_json:
        print_json({"models": str(out), "detector": detector, "users": rows})
        return
    show_table(f"{len(rows)} users enrolled with {detector}", rows)
    typer.echo(f"Models are in {out}")
    if rows and rows[0]["threshold"] is None:
        typer.echo("No thresholds: they need two users or more with two samples or more each.")


@fail_clearly
def score(
    file: FileArgument,
    models: ModelsOption,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score: the log-likelihood of every sample under every user's model.

    Example: `keydyn score typing.csv --models models/ --out scores.csv`
    """
    enrolled = _opened(models)
    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    samples = enrolled.samples(keystrokes)
    scores = enrolled.scores(samples)
    rows = [
        {
            "user": str(user),
            "session": str(session),
            "model": str(name),
            "log-likelihood": float(value),
            "keys": int(n),
        }
        for (user, session), n, line in zip(samples.index, samples.sequences.lengths, scores, strict=True)
        for name, value in zip(enrolled.users, line, strict=True)
    ]
    _deliver(f"{len(samples)} samples under {len(enrolled.users)} models", rows, out, as_json)


@fail_clearly
def identify(
    file: FileArgument,
    models: ModelsOption,
    top: Annotated[int, typer.Option(min=1, help="How many candidates to show for each sample.")] = 3,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Identify: who of the enrolled users typed each sample?

    Example: `keydyn identify unknown.csv --models models/ --top 5`
    """
    import numpy as np

    from keydyn.evaluation.penalty import TIE

    enrolled = _opened(models)
    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    samples = enrolled.samples(keystrokes)
    raw = enrolled.scores(samples)
    posterior = np.exp(raw - np.logaddexp.reduce(raw, axis=1, keepdims=True))
    if len(enrolled.users) > 1 and np.ptp(raw, axis=1).max() < TIE:
        typer.secho("keydyn: all models score alike; is --unit the unit of this file?", err=True, fg="yellow")
    rows = []
    for (user, session), line, chances, n in zip(
        samples.index, raw, posterior, samples.sequences.lengths, strict=True
    ):
        for place, u in enumerate(np.argsort(-line, kind="stable")[:top].tolist()):
            rows.append(
                {
                    "user": str(user),
                    "session": str(session),
                    "rank": place + 1,
                    "candidate": str(enrolled.users[u]),
                    "log-likelihood a key": float(line[u] / n),
                    "probability": float(chances[u]),
                }
            )
    _deliver("Who typed it?", rows, out, as_json)


@fail_clearly
def verify(
    file: FileArgument,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Who it is claimed to be.")],
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Instead of the user's own.")] = None,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify: is each sample typed by the user it is claimed to be? Exit code 1 if one is rejected.

    The score is scaled to 0 … 1 over all enrolled users: 1 is the best of all models, 0 the worst.

    Example: `keydyn verify login.csv --models models/ --user anna`
    """
    from keydyn.evaluation.scores import min_max

    enrolled = _opened(models)
    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    claimed = enrolled.number(user)
    level = enrolled.thresholds[claimed] if threshold is None else threshold
    _check_level(level, enrolled)
    samples = enrolled.samples(keystrokes)
    scaled = min_max(enrolled.scores(samples))[:, claimed]
    rows = [
        {
            "user": str(who),
            "session": str(session),
            "claimed": user,
            "score": float(value),
            "threshold": float(level),
            "verdict": "accepted" if value >= level else "rejected",
        }
        for (who, session), value in zip(samples.index, scaled, strict=True)
    ]
    _deliver(f"Is it {user}?", rows, out, as_json, hidden=("claimed",))
    if any(row["verdict"] == "rejected" for row in rows):
        raise typer.Exit(1)


@fail_clearly
def watch(
    file: FileArgument,
    models: ModelsOption,
    user: Annotated[str, typer.Option("--user", help="Whose session it is said to be.")],
    threshold: Annotated[float | None, typer.Option(min=0, help="Instead of the user's own.")] = None,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch: is it still them, keystroke by keystroke? Exit code 1 if a session is rejected.

    At each key all models are ranked; the claimed user's ranks over the last 25 keys are the penalty. The
    session is rejected when it exceeds the largest that the user's own samples had.

    Example: `keydyn watch session.csv --models models/ --user anna`
    """
    import numpy as np

    from keydyn.evaluation.penalty import first_above

    enrolled = _opened(models)
    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    claimed = enrolled.number(user)
    level = enrolled.penalties[claimed] if threshold is None else threshold
    _check_level(level, enrolled)
    samples = enrolled.samples(keystrokes)
    parts = np.split(enrolled.event_penalties(samples)[:, claimed], samples.sequences.offsets[1:-1])
    rows = []
    for (who, session), penalty in zip(samples.index, parts, strict=True):
        at = first_above(penalty, level)
        rows.append(
            {
                "user": str(who),
                "session": str(session),
                "claimed": user,
                "keys": len(penalty),
                "penalty": float(penalty.max()),
                "threshold": float(level),
                "rejected at key": at + 1 if at < len(penalty) else None,
                "over time": _sparkline(penalty, level),
            }
        )
    _deliver(f"Is it still {user}?", rows, out, as_json, hidden=("claimed",))
    if any(row["rejected at key"] is not None for row in rows):
        raise typer.Exit(1)


def _check_level(level: float, enrolled: Enrolled) -> None:
    """Check that there is somebody to compare with, and a threshold."""
    if level != level or len(enrolled.users) < 2:
        raise ValueError(
            "a claim is judged beside other users: enrol two users or more with two samples or more each"
        )


def _opened(models: Path) -> Enrolled:
    from keydyn.enrolment import load_enrolled

    return load_enrolled(models)


def _deliver(
    title: str, rows: list[dict[str, Any]], out: Path | None, as_json: bool, hidden: tuple[str, ...] = ()
) -> None:
    """A table on the terminal, or JSON; and a CSV file if asked for."""
    if out is not None:
        import pandas as pd

        out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(out, index=False)
    if as_json:
        print_json(rows)
    else:
        show_table(title, [{k: v for k, v in row.items() if k not in hidden} for row in rows])


def _n_keys(keystrokes: pd.DataFrame, user: object) -> int:
    return int((keystrokes["user"] == user).sum())


def _plain(value: float) -> float | None:
    return None if value != value else float(value)


def _sparkline(penalty: Any, threshold: float, width: int = 12) -> str:
    """Blocks, one per stretch of keys, as high as its largest penalty; half height is the threshold."""
    import numpy as np

    blocks = "▁▂▃▄▅▆▇█"
    stretches = np.array_split(penalty, min(width, len(penalty)))
    heights = np.array([stretch.max() for stretch in stretches])
    steps = np.minimum((heights / max(threshold, 1e-12) * 4).astype(int), 7)
    return "".join(blocks[step] for step in steps)
