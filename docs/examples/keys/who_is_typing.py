"""Find out who typed a sample
===========================

Twenty people have enrolled with three short texts each. Then one of them types half a
sentence: who is it? The answer is a ranking, and the first place is not always right.
How often it is depends on the detector.

The typists are simulated. They show how identification works; how well it works on real
people is on the :doc:`results page </results>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from keydyn.datasets import make_typists
from keydyn.evaluation import Enrolment, identification, score_protocol
from keydyn.keystrokes import Samples
from keydyn.lab.frame.names import detector_name

samples = Samples.of(make_typists(20, 7, text="copied", n_keys=15, random_state=4))
detectors = ("manhattan", "hmm", "pohmm-recommended", "population")
scores = {name: score_protocol(Enrolment(3), name, samples) for name in detectors}

# %%
# Every later sample is compared with every template. Scores are logarithms of
# probabilities, so what counts is how far each is behind the best one. The bright cells
# of a row are the candidates for that sample; the frames mark the true typist.

one = scores["pohmm-recommended"]
order = np.argsort(one.owners, kind="stable")
behind = one.raw[order].max(axis=1, keepdims=True) - one.raw[order]

figure, axes = plt.subplots(figsize=(6.2, 5.2), layout="constrained")
image = axes.imshow(
    np.minimum(behind, 30), cmap="magma_r", aspect="auto", interpolation="nearest"
)
for user in range(20):
    axes.add_patch(
        Rectangle((user - 0.5, 4 * user - 0.5), 1, 4, fill=False, edgecolor="C2")
    )
axes.set(
    title="How far each template is behind the best one",
    xlabel="template of user",
    ylabel="sample",
)
axes.set_xticks(range(0, 20, 2))
axes.set_yticks(np.arange(1.5, 80, 8), [f"user {user}" for user in range(0, 20, 2)])
figure.colorbar(image, label="difference of log-likelihood (nats; 30 or more)")

# %%
# How often is the true typist among the first n candidates? The better the detector,
# the fewer candidates are worth a second look.

ranks, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
for name, found in scores.items():
    rates = [identification(found).rate(n) for n in range(1, 11)]
    axes.plot(range(1, 11), rates, "o-", markersize=4, label=detector_name(name))
axes.set(
    title="How often the typist is among the first n",
    xlabel="n (rank)",
    ylabel="share of samples",
)
axes.set(xticks=range(1, 11), ylim=(0, 1.02))
axes.legend(loc="lower right")

# %%
# What to learn from it
# ---------------------
#
# Ask for a ranking rather than for a name, and look at how far the second candidate is
# behind the first. Keys matter: the HMM sees the same times as the POHMM but not which
# key was pressed. The population model has also learnt how people differ, so that
# fifteen keys take it further. Every sample here was typed by a person who is enrolled.
# When that is not certain, use ``Verifier.identify``, which can answer "nobody": see
# :doc:`/guide/decisions`.
