"""Notice that a machine wears out, event by event
===============================================

A machine logs its starts, cycles, pauses and warnings. At some point a bearing begins
to wear: nothing fails yet, but cycles take a little longer, and warnings come sooner.
How soon can that be noticed while the log is still being written, without an alarm
every day?

The log is simulated. A real machine wears slowly, not from one event to the next, so do
not expect the same delays.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from keydyn import HMM, POHMM


def machine(wear: float) -> POHMM:
    """A machine whose cycles take so much longer; in state 1 the material is hard."""
    seconds = np.array([[60.0, 65.0], [20.0, 26.0], [300.0, 300.0], [45.0, 30.0]])
    seconds[1] *= 1 + wear
    seconds[3] /= 1 + 3 * wear
    return POHMM.from_parameters(
        event_types=["start", "cycle", "pause", "warning"],
        startprob=[[0.7, 0.3]] * 4,
        transmat=np.tile([[0.95, 0.05], [0.1, 0.9]], (4, 4, 1, 1)),
        emission=[("lognormal", np.log(seconds), 0.2)],
        event_transmat=[
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.85, 0.05, 0.1],
            [0.9, 0.0, 0.0, 0.1],
            [0.0, 0.8, 0.2, 0.0],
        ],
    )


# %%
# One model is fitted to ten healthy days, another one to ten days of a machine that was
# worn. An event speaks for wear if it is more probable under the second model. This
# evidence adds up and never falls below zero, so that a change shows whenever it comes
# (Page's cumulative sum).


def watch(
    before: POHMM, after: POHMM, seconds: NDArray[Any], events: NDArray[Any]
) -> NDArray[Any]:
    """The evidence for wear after each event, taken one by one as they arrive."""
    healthy, worn = before.online(), after.online()
    total, evidence = 0.0, []
    for value, event in zip(seconds, events, strict=True):
        total += worn.update(value, event) - healthy.update(value, event)
        total = max(total, 0.0)
        evidence.append(total)
    return np.array(evidence)


days = [
    machine(wear).sample(lengths=[300] * 10, random_state=seed)
    for seed, wear in enumerate((0.0, 0.12))
]
models = {}
for name, kind in (("POHMM", POHMM), ("HMM, without types", HMM)):
    models[name] = [
        kind(n_states=2, tol=1e-3).fit(x, events=types, lengths=[300] * 10)
        for x, types, _ in days
    ]

# %%
# The level of the alarm is the highest evidence in twenty other healthy days. Then a
# machine wears from event 300 on.

figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
first, last = (machine(wear).sample(300, random_state=21) for wear in (0.0, 0.12))
seconds, events = (np.concatenate([first[k], last[k]]) for k in (0, 1))
levels = {}
for number, (name, (before, after)) in enumerate(models.items()):
    healthy = [
        machine(0.0).sample(300, random_state=seed)[:2] for seed in range(100, 120)
    ]
    levels[name] = max(watch(before, after, x, types).max() for x, types in healthy)
    evidence = watch(before, after, seconds, events)
    axes.plot(evidence / levels[name], color=f"C{number}", label=name)
axes.axhline(1, color="0.4", linestyle=":", label="alarm")
axes.axvspan(300, 600, color="0.92", zorder=0, label="the bearing wears")
axes.set(
    title="Evidence for wear",
    xlabel="event",
    ylabel="evidence (1: level of the alarm)",
    ylim=(0, 4),
)
axes.legend(loc="upper left")

# %%
# Thirty machines that begin to wear at event 0: how many events until the alarm?

delays, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
for name, (before, after) in models.items():
    found = []
    for seed in range(200, 230):
        x, types, _ = machine(0.12).sample(300, random_state=seed)
        above = watch(before, after, x, types) > levels[name]
        found.append(int(np.argmax(above)) if above.any() else 301)
    label = f"{name}: median {np.median(found):.0f}"
    axes.plot(
        np.sort(found), np.arange(1, 31) / 30, drawstyle="steps-post", label=label
    )
axes.set(
    title="When wear is noticed",
    xlabel="events since wear began",
    ylabel="share of machines",
)
axes.set_xlim(0, 300)
axes.legend(loc="lower right")

# %%
# What to learn from it
# ---------------------
#
# With ``online()`` a fitted model becomes a detector of changes: every event costs the
# same, however long the stream. An alarm needs a level, and a level needs data in which
# nothing is wrong: from twenty days you cannot learn how to have fewer false alarms
# than about one in twenty days. The HMM has to guess from the time alone which kind of
# event it sees. That takes most of the evidence away.
