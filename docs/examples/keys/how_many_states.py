"""Decide how many hidden states to use
====================================

More states always fit the training data better. How many are worth having? Samples that
were held back give the answer; for small models so does a criterion that charges for
every parameter (BIC).

The typist is simulated and has two states, active and passive. Mood, the effect of the
previous key and rollover are simulated too, so that no model here is exactly right, as
with real typing.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import HMM, POHMM
from keydyn.datasets import make_typists
from keydyn.keystrokes import sequences_of

typing = make_typists(1, 16, text="copied", n_keys=120, first_user=6, random_state=2)
numbers = [1, 2, 3, 4, 5]

# %%
# All three kinds of model see intervals and holds: the HMM nothing else, the second one
# the group of the key as well (left letter, right letter, space and so on), and the
# third one the key itself.

kinds = {"HMM": "none", "POHMM, groups of keys": "group", "POHMM, keys": "key"}
figure, panels = plt.subplots(
    3, 1, sharex=True, figsize=(6.2, 6.4), layout="constrained"
)
for (name, events), axes in zip(kinds.items(), panels, strict=True):
    data = sequences_of(typing, ["tau", "duration"], events=events, first="missing")
    train, test = data[:10], data[10:]
    kind = HMM if events == "none" else POHMM
    models = [kind(n_states=n, tol=1e-3).fit(train) for n in numbers]
    for some, label in ((train, "training data"), (test, "held back")):
        likelihood = np.array([model.score(some) / some.n_events for model in models])
        axes.plot(numbers, likelihood, "o-", label=label)
    best = int(np.argmax(likelihood))
    axes.scatter(
        numbers[best], likelihood[best], s=120, facecolor="none", edgecolor="k"
    )
    axes.set(title=name, ylabel="ln likelihood\nper key (nats)", xticks=numbers)
panels[0].legend()
panels[-1].set_xlabel("hidden states")

# %%
# With the HMM there is no need to hold data back: it has few parameters, and BIC
# charges for each of them.

hmms = [HMM(n_states=n, tol=1e-3).fit(train) for n in numbers]
bic = np.array([float(model.bic(train)) for model in hmms])
criterion, axes = plt.subplots(figsize=(6.2, 2.6), layout="constrained")
axes.plot(numbers, bic - bic.min(), "s-")
axes.set(
    title="BIC of the HMM",
    xlabel="hidden states",
    ylabel="above the least",
    xticks=numbers,
)

# %%
# What to learn from it
# ---------------------
#
# The more event types share the data, the fewer states they can afford: every key needs
# its own times in every state, and 1,200 keystrokes are few for that. Judge by samples
# that were held back (the circles); the training data always ask for more. A further
# state that gains a hundredth of a nat often models no more than the tail of the
# pauses, for which a family with heavier tails is cheaper (:doc:`which_family`).
