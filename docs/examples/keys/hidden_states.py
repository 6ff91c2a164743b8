"""See where a typist pauses to think
==================================

Typing comes in bursts. Within a burst the fingers follow a plan; between bursts the
typist thinks, reads or corrects. A model with two hidden states finds the two from the
intervals alone, without a definition of a pause.

The typist is simulated, so that the true states are known and the model can be checked.
They were drawn from a model of the same kind, which flatters it.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import HMM, POHMM
from keydyn.datasets import make_typists
from keydyn.figures import densities_figure, states_figure
from keydyn.keystrokes import sequences_of

typing = make_typists(
    1, 12, text="copied", n_keys=150, return_states=True, first_user=2, random_state=1
)
asked = typing["session"] >= 9
simulated = typing["state"][asked].to_numpy()

# %%
# A key's *group* is enough of an event type here: left or right letter, space,
# punctuation. Single keys would be too rare to be seen in both states.

train, test = (
    sequences_of(typing[part], ["tau"], events="group") for part in (~asked, asked)
)
model = POHMM(n_states=2).fit(train)
states = states_figure(model, test, n_events=60)
states.axes[0].set_ylabel("interval (ms)")

# %%
# The two states, with what was observed in each: state 0 is the flow of typing, state 1
# the pauses. Nothing in the data marks where one ends and the other begins.

densities = densities_figure(model, test)

# %%
# How many states are right? Compare the model with calling every key active, with a
# threshold at one second, and with a plain HMM, which ignores the groups.

rules = {
    "every key active": np.zeros(len(simulated)),
    "pause above 1 s": test.X[:, 0] > 1000,
    "HMM": HMM(n_states=2).fit(train).predict(test),
    "POHMM": model.predict(test),
}
figure, axes = plt.subplots(figsize=(6.2, 2.4), layout="constrained")
for place, found in enumerate(rules.values()):
    right = [np.mean((found == simulated)[simulated == state]) for state in (0, 1)]
    axes.plot(right, [place, place], color="0.8", zorder=0)
    axes.plot(
        right[0], place, "o", color="C0", label="active keys" if place == 0 else None
    )
    axes.plot(right[1], place, "s", color="C1", label="pauses" if place == 0 else None)
axes.set_yticks(range(len(rules)), list(rules))
axes.set(
    title="States that are found",
    xlabel="share found",
    xlim=(-0.02, 1.02),
    ylim=(-0.5, 3.5),
)
figure.legend(loc="outside lower center", ncols=2)

# %%
# What to learn from it
# ---------------------
#
# A hidden state is a way of saying "these intervals belong together". Judge it by each
# state separately: where pauses are rare, calling every key active looks good on
# average and finds none of them. A fixed threshold has to be right for every typist; a
# model finds each typist's own. The groups of keys add nothing here, so the simpler HMM
# would do. With real typing the true states are unknown: look at the densities and at
# the text, and ask whether the states mean anything.
