"""The demonstration: fit simulated typists, identify an unknown sample, show its hidden states."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keydyn.figures.hidden_states import draw_hidden_states
from keydyn.model import POHMM, POHMMClassifier, Sequences
from keydyn.model.arrays import Floats, Integers

PANGRAM = "the five boxing wizards jump quickly past a lazy dog"
KEYS = ["space" if letter == " " else letter for letter in PANGRAM]
TRAINING_SAMPLES = 40
PASSIVE = "bold white on dark_orange3"


def run(out: Path, n_users: int, seed: int) -> None:
    """Do it all and write `identification.csv`, `hidden_states.png` and `typist.keydyn` to `out`."""
    began = time.perf_counter()
    console = Console()
    generator = np.random.default_rng(seed)
    typists = [simulated_typist(generator) for _ in range(n_users)]
    names = [f"user {u:02d}" for u in range(n_users)]
    console.print(
        f"[bold]{n_users} simulated typists[/bold] copy “{PANGRAM}” {TRAINING_SAMPLES} times each, "
        "then once more as strangers."
    )
    training = [draw_samples(typist, TRAINING_SAMPLES, generator)[0] for typist in typists]
    strangers = [draw_samples(typist, 1, generator) for typist in typists]
    queries = Sequences.concatenate([sample for sample, _ in strangers])
    with console.status("fitting a POHMM to each typist"):
        classifier = POHMMClassifier(POHMM(tol=1e-3), n_jobs=2).fit(
            Sequences.concatenate(training), np.repeat(names, TRAINING_SAMPLES)
        )
    scores = classifier.log_likelihoods(queries)
    rank = 1 + np.count_nonzero(scores > np.diag(scores)[:, None], axis=1)

    unknown = int(generator.integers(n_users))
    posterior = classifier.predict_proba(queries[unknown])[0]
    console.print(_ranking(scores[unknown], posterior, names, unknown))
    console.print(
        f"Of all {n_users} strangers’ samples {np.count_nonzero(rank == 1)} are identified rightly.\n"
    )

    model: POHMM = classifier.models_[unknown]
    sample, simulated = strangers[unknown]
    states = model.predict(sample)
    console.print(_coloured(states))
    console.print(
        f"{np.mean(states == simulated):.0%} of the states are those simulated; the true model itself finds "
        f"{np.mean(typists[unknown].predict(sample) == simulated):.0%}."
    )
    out.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(scores, columns=[f"log-likelihood {name}" for name in names])
    table.insert(0, "true user", names)
    table.insert(1, "rank of true user", rank)
    table.to_csv(out / "identification.csv", index=False)
    draw_hidden_states(model, sample.X[:, 0], states, KEYS, 0, out / "hidden_states.png")
    model.save(out / "typist.keydyn")
    files = ", ".join(
        f"[bold]{out / name}[/bold]" for name in ("identification.csv", "hidden_states.png", "typist.keydyn")
    )
    console.print(f"\nWrote {files} in {time.perf_counter() - began:.1f} s.")


def simulated_typist(generator: np.random.Generator) -> POHMM:
    """Somebody with a speed, a touch and a way of pausing of their own; each key a little different.

    State 0 is active, state 1 passive: pauses are longer, and likelier at the space bar.
    """
    keys = sorted(set(KEYS))
    m = len(keys)
    speed, touch = generator.normal(np.log(170.0), 0.25), generator.normal(np.log(90.0), 0.2)
    own_tau, own_duration = generator.normal(0.0, 0.15, (2, m, 1))
    tau = speed + own_tau + np.array([0.0, generator.normal(1.0, 0.2)])
    duration = touch + own_duration + np.array([0.0, generator.normal(0.15, 0.1)])
    scale = np.array([generator.uniform(0.18, 0.3), generator.uniform(0.4, 0.6)])
    pause = np.where(np.array(keys) == "space", generator.beta(6, 6), generator.beta(2, 20))
    passive = np.broadcast_to(pause[None, :, None], (m, m, 2))
    return POHMM.from_parameters(
        keys,
        np.stack([1.0 - pause, pause], axis=1),
        np.stack([1.0 - passive, passive], axis=-1),
        [
            ("lognormal", tau, np.broadcast_to(scale, (m, 2))),
            ("lognormal", duration, np.full((m, 2), generator.uniform(0.12, 0.25))),
        ],
    )


def draw_samples(typist: POHMM, n_samples: int, generator: np.random.Generator) -> tuple[Sequences, Integers]:
    """The text typed several times, with the hidden states; nobody is equally fast twice."""
    lengths = [len(KEYS)] * n_samples
    values, events, states = typist.sample(events=KEYS * n_samples, lengths=lengths, random_state=generator)
    mood: Floats = generator.lognormal(0.0, 0.06, n_samples)
    values = values * np.repeat(mood, len(KEYS))[:, None]
    return Sequences.from_arrays(values, events, lengths), states


def _ranking(scores: Floats, posterior: Floats, names: list[str], owner: int) -> Table:
    table = Table(title="Who typed the unknown sample?", title_justify="left")
    table.add_column("rank", justify="right")
    table.add_column("candidate")
    table.add_column("log-likelihood a key", justify="right")
    table.add_column("probability", justify="right")
    for place, u in enumerate(np.argsort(-scores)[:5].tolist()):
        name, style = (f"{names[u]}  ← typed it", "bold green") if u == owner else (names[u], None)
        table.add_row(
            str(place + 1), name, f"{scores[u] / len(KEYS):.3f}", f"{posterior[u]:.3g}", style=style
        )
    return table


def _coloured(states: Integers) -> Text:
    text = Text("Its hidden states, key by key (active, ")
    text.append("PASSIVE", style=PASSIVE)
    text.append("):\n")
    for letter, state in zip(PANGRAM, states, strict=True):
        text.append(letter.upper().replace(" ", "_") if state else letter, style=PASSIVE if state else "")
    return text
