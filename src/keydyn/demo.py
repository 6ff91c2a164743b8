"""The demonstration: simulated typists are enrolled, identified, verified and watched.

Everything is done with what the commands use, so that the commands that it proposes give the same answers.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from keydyn.arrays import Floats, Integers
from keydyn.atomic import replacing
from keydyn.datasets import save_recordings
from keydyn.datasets.typists import make_typists
from keydyn.enrolment import Enrolled, changing, enrol, n_steps
from keydyn.evaluation.penalty import first_above
from keydyn.evaluation.protocols import Enrolment
from keydyn.evaluation.recognition import recognition
from keydyn.evaluation.running import score_protocol
from keydyn.evaluation.scores import Scores
from keydyn.figures.hidden_states import draw_hidden_states
from keydyn.figures.penalty_over_time import draw_penalty, mean_rejection
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.timing import sequences_of
from keydyn.model import HMM, fit_many
from keydyn.progress import progress_bar, working
from keydyn.terminal import say, show

TRAINING, QUERIES, KEYS = 8, 2, 150
SHOWN = 60
DETECTOR = "pohmm-recommended"
PASSIVE = "bold white on dark_orange3"


def run(out: Path, n_users: int, seed: int) -> dict[str, Any]:
    """Run the demonstration and write recordings, tables, figures and models to `out`; all in numbers."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with working("simulating typists"):
        keystrokes = make_typists(
            n_users, TRAINING + QUERIES, text="copied", n_keys=KEYS, return_states=True, random_state=seed
        )
    known = keystrokes[keystrokes["session"] < TRAINING].reset_index(drop=True)
    asked = keystrokes[keystrokes["session"] >= TRAINING].reset_index(drop=True)
    show(
        f"[bold]{n_users} simulated typists[/bold] copy {TRAINING + QUERIES} passages of {KEYS} keys each; "
        f"the first {TRAINING} enrol them, the last {QUERIES} are unknown samples."
    )
    enrolled = _enrol(known.drop(columns="state"), out / "models")
    queries = enrolled.samples(asked.drop(columns="state"))
    with working("scoring"):
        samples = Samples.of(keystrokes.drop(columns="state"))
        scores = score_protocol(Enrolment(TRAINING), DETECTOR, samples, 2)
    rates = recognition(scores)
    unknown = int(np.random.default_rng(seed).integers(len(queries)))
    user, session = queries.index[unknown]
    show(_ranking(scores, unknown))
    verified = _verified(enrolled, queries)
    show(_rates(rates, len(queries)))
    show(
        f"With the thresholds found at enrolment, verify accepts {verified['genuine_accepted']} of "
        f"{verified['genuine']} genuine claims and {verified['impostors_accepted']} of "
        f"{verified['impostors']} claims of impostors."
    )
    watched = _watch(enrolled, queries, unknown, out)
    show(_watched_text(watched, user))
    states = _show_states(known, asked, user, session, out)
    _write(out, keystrokes.drop(columns="state"), rates, enrolled, user, session)
    names = ", ".join(sorted(path.name for path in out.iterdir() if not path.name.startswith(".")))
    show(f"\nIn [bold]{escape(str(out))}[/bold]: {names}; {time.perf_counter() - started:.0f} s.")
    _propose(out, user)
    means = {str(name): None if np.isnan(mean) else float(mean) for name, mean in rates.mean().items()}
    return {
        "folder": str(out),
        "users": n_users,
        "seed": seed,
        "unknown": {"user": str(user), "session": str(session)},
        **means,
        "verify": verified,
        "watch": watched,
        "states": states,
    }


def _enrol(known: pd.DataFrame, folder: Path) -> Enrolled:
    with progress_bar("enrolling", n_steps(known)) as progress:
        enrolled = enrol(known, DETECTOR, n_jobs=2, progress=progress)
    with changing(folder, None, anew=True) as change:
        change.commit(enrolled)
    return enrolled


def _ranking(scores: Scores, unknown: int) -> Table:
    """The best candidates for one query."""
    table = Table(title="Who typed the unknown sample?", title_justify="left")
    for name in ("rank", "candidate", "log-likelihood per key", "probability"):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    raw = scores.raw[unknown]
    posterior = np.exp(raw - np.logaddexp.reduce(raw))
    for place, u in enumerate(np.argsort(-raw)[:5].tolist()):
        right = scores.users[u] == scores.owners[unknown]
        table.add_row(
            str(place + 1),
            f"user {scores.users[u]}" + ("  ← typed it" if right else ""),
            f"{raw[u] / KEYS:.3f}",
            f"{posterior[u]:.3g}",
            style="bold green" if right else None,
        )
    return table


def _rates(rates: pd.DataFrame, n_queries: int) -> Table:
    """Identification and verification, in a closed and in an open set, in words."""
    table = Table(title=f"All {n_queries} unknown samples, mean over users", title_justify="left")
    table.add_column("")
    table.add_column("closed set:\nimpostors are enrolled too", justify="right")
    table.add_column("open set:\nimpostors are strangers", justify="right")
    closed, opened = rates["eer"].mean(), rates["eer_open"].mean()
    table.add_row("identified", f"{rates['acc'].mean():.0%}", "–")
    table.add_row("equal error rate", f"{closed:.1%}", "–" if np.isnan(opened) else f"{opened:.1%}")
    table.caption = (
        "Beside others, an enrolled impostor is given away by a model of their own; a stranger has none. The "
        "open set leaves the impostor's model out, and is what to expect of strangers."
    )
    table.caption_justify = "left"
    return table


def _verified(enrolled: Enrolled, queries: Samples) -> dict[str, int]:
    """How many claims `keydyn verify` accepts: everybody's samples in the name of everybody."""
    counts = {"genuine": 0, "genuine_accepted": 0, "impostors": 0, "impostors_accepted": 0}
    for user in enrolled.users.tolist():
        threshold = enrolled.manifest.person(user).threshold or 0.0
        accepted = enrolled.claim_scores(user, queries) >= threshold
        genuine = queries.users.astype(str) == user
        counts["genuine"] += int(genuine.sum())
        counts["genuine_accepted"] += int(accepted[genuine].sum())
        counts["impostors"] += int((~genuine).sum())
        counts["impostors_accepted"] += int(accepted[~genuine].sum())
    return counts


def _watch(enrolled: Enrolled, queries: Samples, unknown: int, out: Path) -> dict[str, Any]:
    """What `keydyn watch` says of the unknown sample, and of all others in the same name; drawn, too."""
    owner = str(queries.users[unknown])
    level = float(enrolled.manifest.person(owner).penalty or 0.0)
    penalties: Floats = enrolled.claim_penalties(owner, queries).reshape(len(queries), KEYS)
    genuine, others = penalties[unknown], penalties[queries.users.astype(str) != owner].T
    draw_penalty(genuine, others, level, out / "watching.png")
    rejected = first_above(genuine, level)
    detected = [first_above(others[:, i], level) < KEYS for i in range(others.shape[1])]
    return {
        "threshold": level,
        "genuine_rejected_at_key": rejected + 1 if rejected < KEYS else None,
        "impostors": len(detected),
        "detected": sum(detected),
        "mean_keys": mean_rejection(others, level),
    }


def _watched_text(watched: dict[str, Any], user: object) -> str:
    at = watched["genuine_rejected_at_key"]
    genuine = "is never interrupted" if at is None else f"is interrupted at key {at}"
    whole = "" if watched["detected"] == watched["impostors"] else ", the others counted whole"
    return (
        f"Watched key by key in the name of user {user}, the genuine session {genuine}; "
        f"{watched['detected']} of {watched['impostors']} sessions of others are detected, after "
        f"{watched['mean_keys']:.0f} keys on average{whole}."
    )


def _show_states(
    known: pd.DataFrame, asked: pd.DataFrame, user: object, session: object, out: Path
) -> dict[str, float]:
    """The hidden states of a sample, coloured in the text and drawn; and how many are right in all samples.

    The model is one of intervals alone: most keys are too rare to show both states, and in trials a type for
    each key got fewer states right than calling every key active.
    """
    users = known["user"].unique().tolist()
    training = [sequences_of(_of(known, one), ["tau"], "none") for one in users]
    with working("finding hidden states"):
        models = dict(zip(users, fit_many(HMM(tol=1e-3), training, n_jobs=2), strict=True))
        found: dict[Any, Integers] = {
            one: models[one].predict(sequences_of(_of(asked, one), ["tau"], "none")) for one in users
        }
    sample = _of(asked, user)
    here = (sample["session"] == session).to_numpy()
    states, keys = found[user][here], sample.loc[here, "keyname"].tolist()
    text = Text("\nIts hidden states, key by key (active, ")
    text.append("PASSIVE", style=PASSIVE)
    text.append("):\n")
    for key, state in zip(keys[:SHOWN], states, strict=False):
        letter = " " if key == "space" else key if len(key) == 1 else f"‹{key}›"
        text.append(letter.upper().replace(" ", "_") if state else letter, style=PASSIVE if state else "")
    show(text)
    simulated = np.concatenate([_of(asked, one)["state"].to_numpy() for one in users])
    right = float(np.mean(np.concatenate([found[one] for one in users]) == simulated))
    active = float(np.mean(simulated == 0))
    show(
        f"In all unknown samples, {right:.0%} of the states are those that were simulated; to call every key "
        f"active would be right for {active:.0%}."
    )
    tau = sequences_of(sample[here].reset_index(drop=True), ["tau"], "none").X[:SHOWN, 0]
    draw_hidden_states(models[user], tau, states[:SHOWN], keys[:SHOWN], 0, out / "hidden_states.png")
    return {"right": right, "active": active}


def _of(keystrokes: pd.DataFrame, user: object) -> pd.DataFrame:
    return keystrokes[keystrokes["user"] == user].reset_index(drop=True)


def _write(
    out: Path, recorded: pd.DataFrame, rates: pd.DataFrame, enrolled: Enrolled, user: object, session: object
) -> None:
    with replacing(out / "recognition.csv") as temporary:
        rates.to_csv(temporary)
    enrolled.templates[str(user)].save_template(out / "typist.keydyn")
    save_recordings(recorded[recorded["session"] < TRAINING], out / "typing.csv")
    save_recordings(recorded[recorded["session"] >= TRAINING], out / "unknown.csv")
    # As a program has it that does not know who types: keys and times alone.
    one = recorded[(recorded["user"] == user) & (recorded["session"] == session)]
    with replacing(out / "session.csv") as temporary:
        one.drop(columns=["user", "session"]).to_csv(temporary, index=False)


def _propose(out: Path, user: object) -> None:
    """Commands that can be pasted as they are."""
    program = Path(sys.argv[0])
    on_path = shutil.which("keydyn")
    named = program.name == "keydyn" and (on_path is None or Path(on_path).resolve() != program.resolve())
    keydyn = shlex.quote(str(program)) if named else "keydyn"
    session, models = (shlex.quote(str(out / name)) for name in ("session.csv", "models"))
    commands = (
        f"{keydyn} identify {session} --models {models}",
        f"{keydyn} verify {session} --models {models} --user {user}",
        f"{keydyn} watch {session} --models {models} --user {user}",
        f"{keydyn} evaluate {shlex.quote(str(out / 'typing.csv'))} --out {shlex.quote(str(out / 'report'))}",
    )
    show("Continue with")
    for command in commands:
        # Not wrapped, so that it can be pasted.
        say(f"  {command}")
