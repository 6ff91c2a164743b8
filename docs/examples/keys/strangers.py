"""See why strangers are harder than colleagues
============================================

In many studies every impostor is enrolled as well, so that the system has learnt how
they type: a *closed set*. At a real login the impostor is a stranger. How much does
that change the error rates of one and the same detector?

All typists are simulated. The size of the difference is theirs; that there is one, and
in which direction, was found on real recordings too (:doc:`/results`).
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.evaluation import Enrolment, score_protocol, verification
from keydyn.keystrokes import Samples
from keydyn.lab.frame.names import detector_name

samples = Samples.of(make_typists(40, 7, text="copied", n_keys=25, random_state=8))
names = ("hmm", "pohmm", "pohmm-recommended", "population")
scores = {name: score_protocol(Enrolment(3), name, samples) for name in names}

# %%
# The published protocol scales the scores of a sample to 0–1 over all templates. In a
# closed set, an impostor's own template is among them and takes the top of the scale,
# which pushes the claimed template down. ``open_set=True`` leaves it out, as if the
# impostor had never been seen.

figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
place = np.arange(len(names))
for shift, opened, label in (
    (-0.2, False, "closed set: impostors are enrolled"),
    (0.2, True, "open set: strangers"),
):
    rates = [verification(scores[name], open_set=opened).own["eer"] for name in names]
    values = np.array([rate.value for rate in rates], dtype=float)
    ends = np.array([(rate.low, rate.high) for rate in rates], dtype=float).T
    axes.bar(
        place + shift, values, 0.38, yerr=np.abs(ends - values), capsize=3, label=label
    )
axes.set_xticks(place, [detector_name(name).replace(" ", "\n") for name in names])
axes.set(title="The same scores, two questions", ylabel="equal error rate")
axes.legend()

# %%
# Where does the difference come from? Here are the scaled scores of impostors under the
# claimed template.

one = scores["pohmm-recommended"]
impostors, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
bins = np.linspace(0, 1, 41).tolist()
for values, label in ((one.normalised, "closed set"), (one.open_set, "open set")):
    axes.hist(
        values[one.trials & ~one.own], bins, alpha=0.55, label=f"impostors, {label}"
    )
threshold = float(np.median(one.normalised[one.own]))
axes.axvline(
    threshold, color="black", linestyle="--", label="median of genuine samples"
)
axes.set(
    title="Scaled scores of impostors",
    xlabel="score (1 is the best template)",
    ylabel="trials",
)
axes.legend(loc="upper left")

# %%
# What to learn from it
# ---------------------
#
# Ask of every published error rate whether its impostors were enrolled. In an open set,
# whichever template is best scores exactly 1, even if it fits badly, so some strangers
# tie with the most genuine sample possible. For a login, report the open set, and
# compare a claim with a fixed cohort of people, as ``Verifier`` does, rather than with
# the other users.
