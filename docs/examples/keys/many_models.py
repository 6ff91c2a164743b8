"""Fit a model for everybody at once
=================================

With a few hundred people, fitting one model after the other in a loop is slow and
clumsy. ``fit_many`` fits them together and gives fitted models back in the order of the
data. What do two hundred typists look like beside each other?

They are simulated; the cloud has the shape that was given to it, and not that of real
people.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import POHMM, fit_many
from keydyn.datasets import make_typists
from keydyn.keystrokes import sequences_of

typing = make_typists(200, 4, text="copied", n_keys=100, random_state=10)
data = sequences_of(typing, ["tau", "duration"], events="group")
people = [data[4 * user : 4 * user + 3] for user in range(200)]
models = fit_many(POHMM(n_states=2, tol=1e-3), people)

# %%
# State 0 has the shorter intervals. From each model come four numbers: the typical
# interval in a burst of typing, the typical interval in a pause, the share of pauses,
# and how long keys are held.

tempo = np.exp([model.marginal_.emission[0].loc.ravel() for model in models])
held = np.exp([model.marginal_.emission[1].loc.ravel()[0] for model in models])
pauses = np.array(
    [
        (model.event_prob_[:, None] * model.stationary_).sum(axis=0)[1]
        for model in models
    ]
)

figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
points = axes.scatter(
    tempo[:, 0], tempo[:, 1], s=10 + 250 * pauses, c=held, cmap="viridis", alpha=0.75
)
axes.set(title="Two hundred typists", xscale="log", yscale="log")
axes.set(
    xlabel="typical interval in a burst (ms)", ylabel="typical interval in a pause (ms)"
)
for axis, ticks in (
    (axes.xaxis, [70, 100, 150, 200, 300, 500]),
    (axes.yaxis, [200, 500, 1000, 2000]),
):
    axis.set_ticks(ticks, [str(tick) for tick in ticks])
    axis.set_ticks([], minor=True)
figure.colorbar(points, label="typical hold (ms)")
for share in (0.05, 0.2, 0.4):
    axes.scatter([], [], s=10 + 250 * share, color="0.5", label=f"{share:.0%}")
axes.legend(title="share of pauses", loc="upper left", labelspacing=1.0)

# %%
# Who could be taken for whom? The last sample of each of forty people took no part in
# the fit. Here it is scored with the models of all forty.

some = models[:40]
scores = np.array(
    [model.score_sequences(data[np.arange(3, 160, 4)]) for model in some]
).T
behind = np.minimum((scores.max(axis=1, keepdims=True) - scores) / 100, 1.5)
matrix, axes = plt.subplots(figsize=(6.2, 4.6), layout="constrained")
image = axes.imshow(behind, cmap="magma_r")
axes.set(
    title="How well each model explains each typist",
    xlabel="model of typist",
    ylabel="sample of typist",
)
matrix.colorbar(image, label="behind the best (nats per key; 1.5 or more)")

# %%
# What to learn from it
# ---------------------
#
# Treat a model as a description of a person: its parameters are numbers that can be
# compared, drawn and correlated with other things. Use ``fit_many`` for people, for
# folds of a cross-validation or for surrogates; it uses all processors with ``n_jobs``,
# and an error names the item that caused it. Bright columns are typists whom many could
# be taken for.
