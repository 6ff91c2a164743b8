"""Notice that another person has taken over
=========================================

You have logged in, and you leave your desk without locking the screen. Another person
sits down and continues to type. How soon is that noticed, and how often is the right
person locked out by mistake?

The typists are simulated, and each takeover is made by joining two people's typing.
What was measured on real recordings is under "Watching a session" in
:doc:`/guide/decisions`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier

typing = make_typists(44, 6, text="free", n_keys=100, random_state=5)
user, session = typing["user"], typing["session"]
# Short sessions cannot show how to aim for fewer mistakes than this.
targets = Targets(lockouts_per_hour=3)
verifier = Verifier.learn(typing[(user < 24) & (session < 4)], at=targets)


def typed(number: int, sample: int) -> pd.DataFrame:
    """One sample of one typist."""
    return typing[(user == number) & (session == sample)].reset_index(drop=True)


def joined(owner: int, other: int) -> pd.DataFrame:
    """A session that the owner begins and another person continues after a second."""
    first, second = typed(owner, 4), typed(other, 5)
    shift = first["timepress"].iloc[-1] + 1000 - second["timepress"].iloc[0]
    second[["timepress", "timerelease"]] += shift
    return pd.concat([first, second], ignore_index=True)


# %%
# User 30 enrols with four samples. Every key of the session is worth a little evidence.
# The *trust* sums up the last fifty keys or so. The *suspicion* adds up what speaks
# against the claim, and the session is locked when it rises above a level.

verifier.enrol("user 30", typing[(user == 30) & (session < 4)])
watched = verifier.watch("user 30").update(joined(30, 41))
keys = np.arange(1, len(watched.trust) + 1)

figure, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(6.2, 4.6), layout="constrained"
)
above.plot(keys, watched.trust, color="C0")
above.set(title="Trust", ylabel="probability", ylim=(0, 1.02))
below.plot(keys, watched.suspicion, color="C1")
level = verifier.watching.level
below.axhline(level, color="0.4", linestyle=":", label="the session is locked")
below.set(
    title="Suspicion", xlabel="key", ylabel="evidence (nats)", ylim=(0, 4 * level)
)
for axes in (above, below):
    axes.axvspan(100, len(keys), color="0.9", zorder=0, label="another person types")
below.legend(loc="upper left")

# %%
# One takeover proves little. Here are all pairs of four owners and ten others, forty
# sessions in one call.

pairs = [(owner, other) for owner in range(30, 34) for other in range(34, 44)]
for owner in range(31, 34):
    verifier.enrol(f"user {owner}", typing[(user == owner) & (session < 4)])
sessions = verifier.watch_many([f"user {owner}" for owner, _ in pairs])
together = pd.concat([joined(*pair) for pair in pairs], ignore_index=True)
sessions.update_keystrokes(together, np.repeat(np.arange(len(pairs)), 200))
early = (sessions.locked_at > 0) & (sessions.locked_at <= 100)
delays = np.where(sessions.locked_at > 0, sessions.locked_at - 100, 101)[~early]

histogram, axes = plt.subplots(figsize=(6.2, 3.0), layout="constrained")
axes.hist(delays, np.arange(0, 111, 10).tolist(), color="C1", edgecolor="white")
axes.axvline(
    float(np.median(delays)),
    color="black",
    linestyle="--",
    label=f"median: {np.median(delays):.0f}",
)
axes.set(
    title="When a takeover is noticed",
    xlabel="keys after the change (beyond 100: never)",
)
axes.set_ylabel("number of takeovers")
axes.legend()
print(f"{early.sum()} of {len(pairs)} sessions were locked before the change")

# %%
# What to learn from it
# ---------------------
#
# A takeover is not noticed at once: a single key is little evidence of who pressed it.
# Most are noticed within a line of text. You choose how often the right person may be
# interrupted, and the delay follows from that choice. Show the trust to people, but let
# the suspicion decide, because it reacts soonest to a change. A locked session should
# ask for a password, not throw anyone out.
