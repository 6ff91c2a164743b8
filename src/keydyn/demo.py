"""The demonstration: simulated typists are enrolled, identified, verified and watched."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from keydyn.atomic import replacing
from keydyn.datasets import save_recordings
from keydyn.datasets.typists import make_typists
from keydyn.detectors import Markov, Population
from keydyn.evaluation.penalty import first_above, rank_penalty
from keydyn.evaluation.protocols import Enrolment
from keydyn.evaluation.recognition import recognition
from keydyn.evaluation.running import enrolments, scores_of
from keydyn.evaluation.scores import Scores
from keydyn.figures.hidden_states import draw_hidden_states
from keydyn.figures.penalty_over_time import draw_penalty
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.timing import sequences_of
from keydyn.model import POHMM
from keydyn.terminal import progress_bar

TRAINING, QUERIES, KEYS = 8, 2, 150
SHOWN = 60
PASSIVE = "bold white on dark_orange3"


def run(out: Path, n_users: int, seed: int) -> None:
    """Run the demonstration and write recordings, tables, figures and a model to `out`."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    keystrokes = make_typists(
        n_users, TRAINING + QUERIES, text="copied", n_keys=KEYS, return_states=True, random_state=seed
    )
    samples = Samples.of(keystrokes.drop(columns="state"))
    queries = samples[samples.numbers >= TRAINING]
    console.print(
        f"[bold]{n_users} simulated typists[/bold] copy {TRAINING + QUERIES} passages of {KEYS} keys each; "
        f"the last {QUERIES} are unknown samples."
    )
    protocol = Enrolment(TRAINING)
    with progress_bar("fitting a POHMM to each", n_users) as progress:
        enrolled = enrolments(protocol, "pohmm-recommended", samples, 2, progress)
    scores, population = scores_of(protocol, enrolled, samples, 2), enrolled[0].population

    unknown = int(np.random.default_rng(seed).integers(len(queries)))
    console.print(_ranking(scores, unknown))
    rates = recognition(scores)
    console.print(
        f"Of all {len(queries)} unknown samples {rates['acc'].mean():.0%} are identified; "
        f"verification has an equal error rate of {rates['eer'].mean():.1%} (mean over users)."
    )
    console.print(_watch(population, queries, unknown, out))

    user, session = queries.index[unknown]
    typed = keystrokes[keystrokes["user"] == user]
    _show_states(typed[typed["session"] < TRAINING], typed[typed["session"] == session], console, out)
    with replacing(out / "recognition.csv") as temporary:
        rates.to_csv(temporary)
    _model(population, user).save(out / "typist.keydyn")
    recorded = keystrokes.drop(columns="state")
    known = recorded["session"] < TRAINING
    save_recordings(recorded[known], out / "typing.csv")
    save_recordings(recorded[~known], out / "unknown.csv")
    names = ", ".join(sorted(path.name for path in out.iterdir() if path.is_file()))
    console.print(f"\nIn [bold]{escape(str(out))}[/bold]: {names}; {time.perf_counter() - started:.1f} s.")
    command = escape(f"keydyn fit {out / 'typing.csv'} --out {out / 'models'}")
    console.print(f"Continue with [bold]{command}[/bold]")


def _ranking(scores: Scores, unknown: int) -> Table:
    """The best candidates for one query."""
    table = Table(title="Who typed the unknown sample?", title_justify="left")
    for name in ("rank", "candidate", "log-likelihood a key", "probability"):
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


def _watch(population: Population, queries: Samples, unknown: int, out: Path) -> str:
    """At which key somebody else would have been found out in this session, in a sentence."""
    session = queries[[unknown]]
    penalty = rank_penalty(population.score_events(session), session.sequences.offsets)
    is_owner = population.users == session.users[0]
    genuine, others = penalty[:, is_owner][:, 0], penalty[:, ~is_owner]
    threshold = float(genuine.max())
    draw_penalty(genuine, others, threshold, out / "watching.png")
    rejected = np.array([first_above(others[:, i], threshold) for i in range(others.shape[1])])
    noticed = rejected < len(genuine)
    when = f", after {np.mean(rejected[noticed] + 1):.0f} keys on average" if noticed.any() else ""
    return (
        f"Watched key by key, {np.count_nonzero(noticed)} of {len(noticed)} impostors in this session are "
        f"found out{when}, with the lowest threshold ({threshold:g}) that never rejects its genuine user."
    )


def _show_states(training: pd.DataFrame, sample: pd.DataFrame, console: Console, out: Path) -> None:
    """The hidden states of a sample, coloured in the text and drawn.

    Event types are groups of keys, and intervals are the only feature: most keys are too rare to show two
    states. In trials with eight typists the recognition model, with a type for each key, got fewer states
    right than calling every key active.
    """
    known, sequences = (
        sequences_of(frame.reset_index(drop=True), ["tau"], "group") for frame in (training, sample)
    )
    model = POHMM(tol=1e-3).fit(known)
    states = model.predict(sequences)
    text = Text("\nIts hidden states, key by key (active, ")
    text.append("PASSIVE", style=PASSIVE)
    text.append("):\n")
    keys = sample["keyname"].tolist()
    for key, state in zip(keys[:SHOWN], states, strict=False):
        letter = " " if key == "space" else key if len(key) == 1 else f"‹{key}›"
        text.append(letter.upper().replace(" ", "_") if state else letter, style=PASSIVE if state else "")
    console.print(text)
    simulated = sample["state"].to_numpy()
    console.print(
        f"{np.mean(states == simulated):.0%} of the states are those that were simulated; to call every key "
        f"active would be right for {np.mean(simulated == 0):.0%}."
    )
    intervals = sequences.X[:SHOWN, 0]
    draw_hidden_states(model, intervals, states[:SHOWN], keys[:SHOWN], 0, out / "hidden_states.png")


def _model(population: Population, user: object) -> POHMM:
    detector = population.detectors[population.users.tolist().index(user)]
    if not isinstance(detector, Markov):
        raise TypeError("the demonstration fits hidden Markov models")
    return detector.model_
