"""Choose the distribution of the intervals
========================================

A hidden state needs a distribution for what it emits. Intervals are positive and
skewed, and now and then the typist answers the telephone. Which family describes them
best, and which one survives the telephone?

The typist is simulated, with log-normal times: the log-normal is right by construction.
Real typing has heavier tails, which a few interruptions imitate here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from keydyn import HMM
from keydyn.datasets import make_typists
from keydyn.figures.marginal_density import state_densities
from keydyn.keystrokes import sequences_of

typing = make_typists(1, 16, text="copied", n_keys=150, first_user=3, random_state=5)
clean = sequences_of(typing, ["tau"], events="none", first="missing")
random = np.random.default_rng(1)
# A minute, once in 200 keys.
interrupted = np.where(random.random(clean.X.shape) < 0.005, 60_000.0, clean.X)
spoiled = clean.with_values(interrupted)

# %%
# Each family is fitted to ten samples, as they are and with the interruptions. Both
# models are then judged by six other samples without any.

families = ("normal", "exponential", "gamma", "lognormal", "logstudent")
unfitted = {name: HMM(n_states=2, emission=name, tol=1e-3) for name in families}
models = {name: clone(model).fit(clean[:10]) for name, model in unfitted.items()}
robust = {name: clone(model).fit(spoiled[:10]) for name, model in unfitted.items()}
test = clean[10:]

figure, axes = plt.subplots(figsize=(6.2, 3.0), layout="constrained")
for place, name in enumerate(families):
    scores = [fitted[name].score(test) / test.n_events for fitted in (models, robust)]
    axes.plot(scores, [place, place], color="0.8", zorder=0)
    axes.plot(scores[0], place, "o", color="C0", label="clean" if place == 0 else None)
    axes.plot(
        scores[1],
        place,
        "s",
        color="C1",
        label="with interruptions" if place == 0 else None,
    )
axes.set_yticks(range(len(families)), families)
axes.set(title="Later samples, by what the model was fitted to")
axes.set(xlabel="log-likelihood per key (nats); right is better", ylim=(-0.5, 4.5))
figure.legend(loc="outside lower center", ncols=2)

# %%
# What each model expects, both states together, beside what was observed. The normal
# distribution expects intervals below zero; the exponential one expects most of them to
# be near zero.

edges = np.geomspace(30, 3000, 36)
x = np.geomspace(30, 3000, 400)
observed = test.X[np.isfinite(test.X[:, 0]), 0]
densities, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
weights = np.full(len(observed), 1 / len(observed))
axes.hist(observed, edges.tolist(), weights=weights, color="0.85", label="observed")
for name in families[:-1]:
    density = state_densities(models[name], 0, x).sum(axis=0)
    axes.plot(x, density * x * np.log(edges[1] / edges[0]), label=name)
axes.set(
    title="Fitted to clean samples",
    xscale="log",
    xlabel="interval (ms)",
    ylabel="share of keys in a bar",
)
axes.legend()

# sphinx_gallery_thumbnail_number = 2

# %%
# What to learn from it
# ---------------------
#
# Take the log-normal for times, unless samples that were held back suggest otherwise.
# If recordings contain interruptions that you cannot remove, ``logstudent`` costs
# little and is hardly moved by them. Compare families by held-back likelihood in the
# same unit, never by how well a curve seems to follow a histogram.
