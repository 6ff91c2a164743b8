"""The demonstration: simulated typists are enrolled, identified, verified and watched.

It calls the same functions as the commands, so that the commands that it proposes give the same answers.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from keydyn.arrays import Integers
from keydyn.atomic import replacing
from keydyn.datasets import save_recordings
from keydyn.datasets.simulated.typists import make_typists
from keydyn.decisions import Identification, Targets, Verifier
from keydyn.detectors import make_detector
from keydyn.evaluation.continuous.penalty import first_above
from keydyn.evaluation.protocols.protocol import Enrolment
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.evaluation.rates.verification import recognition
from keydyn.figures.any_model import states_figure
from keydyn.figures.penalty_over_time import draw_suspicion, mean_rejection
from keydyn.figures.style import write_figure
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.timing import sequences_of
from keydyn.model import HMM, fit_many
from keydyn.progress import progress_bar, working
from keydyn.terminal import own_command, say, show

TRAINING, QUERIES, KEYS = 8, 2, 150
SHOWN = 60
# Typists in addition to those who are enrolled: some calibrate the scores, the others are strangers.
CALIBRATING, STRANGERS = 20, 8
# The sessions of those who calibrate are too short to find the level for fewer lock-outs.
LOCKOUTS_PER_HOUR = 5
DETECTOR = "pohmm-recommended"
PASSIVE = "bold white on dark_orange3"


class DemoTyping(NamedTuple):
    """The typing of the demonstration.

    `recorded` is all typing of the people enrolled, `known` what they typed at enrolment, `asked` what they
    typed later, and `states` the true hidden states of the latter. The other typists are `calibrating` and
    `strangers`.
    """

    recorded: pd.DataFrame
    known: pd.DataFrame
    asked: pd.DataFrame
    states: Integers
    calibrating: pd.DataFrame
    strangers: pd.DataFrame


def run(out: Path, n_users: int, seed: int) -> dict[str, Any]:
    """Run the demonstration; write recordings, tables, figures and models to `out`, and return results."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with working("simulating typists"):
        typing = _simulated(n_users, seed)
    show(
        f"[bold]{n_users} simulated typists[/bold] copy {TRAINING + QUERIES} passages of {KEYS} keys each; "
        f"the first {TRAINING} enrol them, and the last {QUERIES} are unknown samples. {CALIBRATING} others, "
        f"who are not enrolled, calibrate the scores. {STRANGERS} more are strangers."
    )
    verifier = _enrol(typing, out / "models")
    queries = recorded_samples(typing.asked)
    with working("scoring"):
        scores = score_protocol(Enrolment(TRAINING), DETECTOR, Samples.of(typing.recorded), 2)
    rates = recognition(scores)
    unknown = int(np.random.default_rng(seed).integers(len(queries)))
    user, session = queries.index[unknown]
    show(_ranking(verifier.identify(queries[[unknown]]), str(user)))
    show(_rates(rates, len(queries)))
    verified = _verified(verifier, queries, recorded_samples(typing.strangers))
    show(
        f"At a target of one stranger in a hundred, verify accepts {verified['genuine_accepted']} of "
        f"{verified['genuine']} genuine claims, {verified['impostors_accepted']} of "
        f"{verified['impostors']} of other users and {verified['strangers_accepted']} of "
        f"{verified['strangers']} of strangers."
    )
    watched = _watch(verifier, queries, unknown, out)
    show(_watched_text(watched, user))
    states = _show_states(typing, user, session, out)
    _write(out, typing, rates, user, session)
    verifier.person(str(user)).template.save_template(out / "typist.keydyn")
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


def _simulated(n_users: int, seed: int) -> DemoTyping:
    total, samples = n_users + CALIBRATING + STRANGERS, TRAINING + QUERIES
    typed = make_typists(total, samples, "copied", KEYS, return_states=True, random_state=seed)
    states, user, later = typed.pop("state"), typed["user"], typed["session"] >= TRAINING
    enrolled, calibrates = user < n_users, user < n_users + CALIBRATING

    def rows(which: pd.Series[bool]) -> pd.DataFrame:
        return typed[which].reset_index(drop=True)

    return DemoTyping(
        recorded=rows(enrolled),
        known=rows(enrolled & ~later),
        asked=rows(enrolled & later),
        states=states[enrolled & later].to_numpy(),
        calibrating=rows(calibrates & ~enrolled),
        strangers=rows(~calibrates & later),
    )


def _enrol(typing: DemoTyping, folder: Path) -> Verifier:
    with working("calibrating"):
        # Simulated typists are machines, and would be rejected as such without this.
        targets = Targets(lockouts_per_hour=LOCKOUTS_PER_HOUR, alarms=0.0)
        verifier = Verifier(make_detector(DETECTOR), targets).calibrate(typing.calibrating, n_jobs=2)
    groups = {str(user): _of(typing.known, user) for user in typing.known["user"].unique()}
    with progress_bar("enrolling", len(groups)) as progress:
        verifier.enrol_many(groups, n_jobs=2, progress=progress)
    verifier.save(folder)
    return verifier


def _ranking(found: Identification, owner: str) -> Table:
    """A table of the best candidates for one query, and of the probability that it is none of them."""
    table = Table(title="Who typed the unknown sample?", title_justify="left")
    for name in ("rank", "candidate", "probability"):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    for place, candidate in enumerate(found.candidates[:5]):
        right = candidate.user == owner
        table.add_row(
            str(place + 1),
            f"user {candidate.user}" + ("  ← typed it" if right else ""),
            f"{candidate.probability:.3g}",
            style="bold green" if right else None,
        )
    table.add_row("–", "none of these", f"{found.nobody_probability:.3g}")
    return table


def _rates(rates: pd.DataFrame, n_queries: int) -> Table:
    """A table of identification and verification rates, in a closed and in an open set."""
    table = Table(title=f"All {n_queries} unknown samples, mean over users", title_justify="left")
    table.add_column("")
    table.add_column("closed set:\nimpostors are enrolled too", justify="right")
    table.add_column("open set:\nimpostors are strangers", justify="right")
    closed, opened = rates["eer"].mean(), rates["eer_open"].mean()
    table.add_row("identified", f"{rates['acc'].mean():.0%}", "–")
    table.add_row("equal error rate", f"{closed:.1%}", "–" if np.isnan(opened) else f"{opened:.1%}")
    table.caption = (
        "As in the paper, each score is normalised by the scores of the other users. An impostor who is "
        "enrolled scores best with their own model; a stranger has none, and is harder to recognise. The "
        "verifier below compares with people who are not enrolled instead."
    )
    table.caption_justify = "left"
    return table


def _verified(verifier: Verifier, queries: Samples, strangers: Samples) -> dict[str, int]:
    """Count the claims that `keydyn verify` accepts, with each sample in the name of every user."""
    counts = dict.fromkeys(("genuine", "impostors", "strangers"), 0)
    counts |= {f"{kind}_accepted": 0 for kind in counts}
    owners = queries.users.astype(str)
    for user in verifier.users:
        decided = [decision.accepted for decision in verifier.verify_many(user, queries)]
        strange = [decision.accepted for decision in verifier.verify_many(user, strangers)]
        own = owners == user
        for kind, accepted in (
            ("genuine", np.array(decided)[own]),
            ("impostors", np.array(decided)[~own]),
            ("strangers", np.array(strange)),
        ):
            counts[kind] += len(accepted)
            counts[f"{kind}_accepted"] += int(accepted.sum())
    return counts


def _watch(verifier: Verifier, queries: Samples, unknown: int, out: Path) -> dict[str, Any]:
    """Watch the unknown sample and all others in the same name, as `keydyn watch` does; draw a figure."""
    owner, level = str(queries.users[unknown]), verifier.watching.level
    found = verifier.suspicion(owner, queries).reshape(len(queries), KEYS)
    genuine, others = found[unknown], found[queries.users.astype(str) != owner].T
    draw_suspicion(genuine, others, level, out / "watching.png")
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
    whole = "" if watched["detected"] == watched["impostors"] else ", counting the others in full"
    return (
        f"Watched key by key as user {user}, at a level that interrupts genuine typing "
        f"{LOCKOUTS_PER_HOUR} times per hour, the genuine session {genuine}; "
        f"{watched['detected']} of {watched['impostors']} sessions of others are detected, after "
        f"{watched['mean_keys']:.0f} keys on average{whole}."
    )


def _show_states(typing: DemoTyping, user: object, session: object, out: Path) -> dict[str, float]:
    """Show the hidden states of a sample in its text and as a figure; count the right ones in all samples.

    The model has intervals alone, without event types: most keys are too rare to show both states, and in
    trials a type for each key got fewer states right than calling every key active.
    """
    users = typing.known["user"].unique().tolist()
    training = [sequences_of(_of(typing.known, one), ["tau"], "none") for one in users]
    with working("finding hidden states"):
        models = dict(zip(users, fit_many(HMM(tol=1e-3), training, n_jobs=2), strict=True))
        found: dict[Any, Integers] = {
            one: models[one].predict(sequences_of(_of(typing.asked, one), ["tau"], "none")) for one in users
        }
    sample = _of(typing.asked, user)
    here = (sample["session"] == session).to_numpy()
    states, keys = found[user][here], sample.loc[here, "keyname"].tolist()
    text = Text("\nIts hidden states, key by key (active, ")
    text.append("PASSIVE", style=PASSIVE)
    text.append("):\n")
    for key, state in zip(keys[:SHOWN], states, strict=False):
        letter = " " if key == "space" else key if len(key) == 1 else f"‹{key}›"
        text.append(letter.upper().replace(" ", "_") if state else letter, style=PASSIVE if state else "")
    show(text)
    # The states are sorted by user, as samples are.
    right = float(np.mean(np.concatenate([found[one] for one in users]) == typing.states))
    active = float(np.mean(typing.states == 0))
    show(
        f"Over all unknown samples, {right:.0%} of the states are found as they were simulated. Calling "
        f"every key active would be right for {active:.0%} of them."
    )
    # The HMM uses intervals alone; the keys are only written under them.
    shown = sequences_of(sample[here].reset_index(drop=True), ["tau"], "key")
    write_figure(states_figure(models[user], shown, n_events=SHOWN), out / "hidden_states.png")
    return {"right": right, "active": active}


def _of(keystrokes: pd.DataFrame, user: object) -> pd.DataFrame:
    return keystrokes[keystrokes["user"] == user].reset_index(drop=True)


def _write(out: Path, typing: DemoTyping, rates: pd.DataFrame, user: object, session: object) -> None:
    with replacing(out / "recognition.csv") as temporary:
        rates.to_csv(temporary)
    save_recordings(typing.known, out / "typing.csv")
    save_recordings(typing.asked, out / "unknown.csv")
    # Keys and times alone, as recorded by a program that does not know who types.
    one = _of(typing.asked, user)
    with replacing(out / "session.csv") as temporary:
        one[one["session"] == session].drop(columns=["user", "session"]).to_csv(temporary, index=False)


def _propose(out: Path, user: object) -> None:
    """Print commands that can be pasted as they are."""
    keydyn = own_command()
    session, models = (shlex.quote(str(out / name)) for name in ("session.csv", "models"))
    commands = (
        f"{keydyn} identify {session} --models {models} --alarms 0",
        f"{keydyn} verify {session} --models {models} --user {user} --alarms 0",
        f"{keydyn} watch {session} --models {models} --user {user} --lockouts-per-hour {LOCKOUTS_PER_HOUR}",
        f"{keydyn} evaluate {shlex.quote(str(out / 'typing.csv'))} --out {shlex.quote(str(out / 'report'))}",
    )
    show("Continue with")
    for command in commands:
        # Not wrapped, so that they can be pasted.
        say(f"  {command}")
    say(
        f"These people are enrolled with {DETECTOR}, calibrated on {CALIBRATING} other simulated typists. A "
        "folder of your own, from keydyn fit, rests on the population of real people that comes with keydyn: "
        "on simulated typing, its answers and its error rates differ. Without --alarms 0, what no hand has "
        "typed is rejected, and these typists are a program."
    )
