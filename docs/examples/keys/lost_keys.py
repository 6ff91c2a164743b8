"""See what the timings give away about the text
=============================================

Suppose that a program stores no keys, only the times between them, "to protect
privacy". How much of the text can a person who knows the typist guess from the times
alone?

The typist is simulated. Real typing gives away less than this, but more than nothing:
what was measured is in :doc:`/privacy`.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import POHMM
from keydyn.datasets import make_typists
from keydyn.keystrokes import sequences_of

typing = make_typists(1, 22, text="copied", n_keys=150, first_user=5, random_state=3)
data = sequences_of(typing, ["tau", "duration"], events="key")
model = POHMM(n_states=2, tol=1e-2).fit(data[:20])

# %%
# A POHMM contains how long each key takes and which key follows which.
# ``predict_events`` turns that around: it takes the times and gives the probability of
# every key.

asked = data[20:]
keys = asked.labels().astype(str)
guess, probability = model.predict_events(asked.without_events())
truth = np.searchsorted(model.event_types_.astype(str), keys)
# How many keys are more probable than the one that was typed?
own = probability[np.arange(len(keys)), truth]
rank = (probability > own[:, None]).sum(axis=1)
for label, some in (("typed: ", keys), ("guessed:", guess)):
    shown = [" " if key == "space" else key if len(key) == 1 else "·" for key in some]
    print(label, "".join(shown[:60]))

# %%
# Without the times, the best one can do is to name the most frequent keys of the
# enrolment text.

share = model.event_prob_
chance = (share > share[truth][:, None]).sum(axis=1)
n = np.arange(1, 13)
figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axes.plot(n, [np.mean(rank < k) for k in n], "o-", label="from the times")
guessed = [np.mean(chance < k) for k in n]
axes.plot(n, guessed, "s--", color="0.5", label="most frequent keys, without times")
axes.set(
    title="Is the key among the first n guesses?",
    xlabel="n (guesses)",
    ylabel="share of keys",
    ylim=(0, 1),
)
axes.set_xticks(n)
axes.legend()

# %%
# Some keys give themselves away.

common = [*"etaoinshrdl", "space"]
rates, axes = plt.subplots(figsize=(6.2, 3.0), layout="constrained")
x = np.arange(len(common))
for shift, guesses, label in (
    (-0.2, 1, "first guess"),
    (0.2, 3, "among three guesses"),
):
    recovered = [np.mean(rank[keys == key] < guesses) for key in common]
    axes.bar(x + shift, recovered, 0.4, label=label)
axes.set_xticks(x, common)
axes.set(
    title="Keys that are recovered",
    xlabel="key",
    ylabel="share of its occurrences",
    ylim=(0, 1),
)
axes.legend()

# sphinx_gallery_thumbnail_number = 2

# %%
# What to learn from it
# ---------------------
#
# Times are not anonymous: with a model of the typist they reveal something of the text,
# even if no key was stored. Here the model was learnt from much typing of the same
# person; with less, the task is harder. Treat recordings of times with as much care as
# the text itself, and keep passwords out of them.
