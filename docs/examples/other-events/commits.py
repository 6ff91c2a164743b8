"""Tell working sessions from breaks in a commit history
=====================================================

When did a person work, and when did they return from a break? The time between two
commits does not show it: a merge waits for a review even in the middle of a busy day,
and a typo is fixed within minutes. A POHMM takes the type of commit into account; an
HMM cannot.

The history is simulated from a POHMM, so that the true states are known. That makes the
comparison clean, and the POHMM's result better than it would be on a real repository.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import HMM, POHMM, Sequences
from keydyn.figures import states_figure

# Typical hours since the last commit, within a session and after a break.
typical = {
    "feature": (0.7, 15),
    "fix": (0.25, 10),
    "docs": (0.1, 12),
    "merge": (4.0, 30),
}
developer = POHMM.from_parameters(
    event_types=list(typical),
    startprob=[[0.5, 0.5]] * 4,
    transmat=np.tile([[0.85, 0.15], [0.8, 0.2]], (4, 4, 1, 1)),
    emission=[("lognormal", np.log(list(typical.values())), 0.45)],
    event_transmat=[
        [0.3, 0.4, 0.1, 0.2],
        [0.3, 0.3, 0.2, 0.2],
        [0.4, 0.2, 0.1, 0.3],
        [0.6, 0.2, 0.2, 0.0],
    ],
)
hours, types, simulated = developer.sample(lengths=[60] * 20, random_state=1)
history = Sequences.from_arrays(hours, types, [60] * 20)

# %%
# Both models have two states, without any meaning at first. The fit starts four times,
# from different values, and the best result counts.

model = POHMM(n_states=2, n_init=4, random_state=0).fit(history)
hmm = HMM(n_states=2, n_init=4, random_state=0).fit(history)
print(model.summary())

states = states_figure(model, history[:1], n_events=40)
states.axes[0].set_ylabel("hours since\nthe last commit")
states.axes[1].set_xlabel("commit")

# %%
# For each type of commit, how often is the state right?

figure, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
place = np.arange(4)
for shift, name, found in (
    (-0.2, "HMM, without types", hmm.predict(history)),
    (0.2, "POHMM", model.predict(history)),
):
    right = [np.mean((found == simulated)[types == kind]) for kind in typical]
    axes.bar(place + shift, right, 0.38, label=name)
axes.set_xticks(place, list(typical))
axes.set(
    title="In a session, or after a break?",
    xlabel="type of commit",
    ylabel="share right",
    ylim=(0, 1),
)
figure.legend(loc="outside lower center", ncols=2)

# %%
# A wait of five hours before a merge means something else than before a fix. The POHMM
# has learnt where the border lies for each type.

waits = np.geomspace(0.05, 60, 200)
borders, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
for kind in typical:
    after_break = model.predict_proba(
        waits[:, None], events=[kind] * 200, lengths=[1] * 200
    )[:, 1]
    axes.plot(waits, after_break, label=kind)
after_break = hmm.predict_proba(waits[:, None], lengths=[1] * 200)[:, 1]
axes.plot(waits, after_break, "--", color="0.4", label="HMM, any type")
axes.set(title="What a wait says", xscale="log", xlabel="hours since the last commit")
axes.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
axes.set_ylabel("probability of a break")
axes.legend()

# sphinx_gallery_thumbnail_number = 3

# %%
# What to learn from it
# ---------------------
#
# Use a POHMM when the same value means different things for different types of events,
# and you want to know the state behind them. An HMM has to put one border somewhere,
# and is then wrong about the type that is slow by nature. Give the types that you know;
# do not let the hidden states stand for them.
