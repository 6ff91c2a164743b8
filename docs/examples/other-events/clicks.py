"""Sort visitors into people and scripts by their clicks
=====================================================

A shop sees what visitors do (view, search, put into the basket, pay) and when. Some
visitors are people, some are scripts, and some are scripts that wait for random times
in order to look like people. A classifier made of POHMMs, one for each kind,
distinguishes them.

All visits are simulated. A script that copies the rhythm of a real visit would be
harder to find than these.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict

from keydyn import POHMM, POHMMClassifier, Sequences

steps = [
    [0.5, 0.3, 0.18, 0.02],
    [0.8, 0.2, 0.0, 0.0],
    [0.6, 0.2, 0.1, 0.1],
    [0.9, 0.1, 0.0, 0.0],
]
# Typical seconds when browsing and when reading, and their spread. Scripts wait for
# the same time whatever they click.
rhythm = {
    "person": ([[6, 40], [15, 30], [2, 4], [30, 60]], 0.5),
    "script": ([[2, 2]] * 4, 0.2),
    "disguised": ([[5, 20]] * 4, 0.8),
}
visits, pages, kinds = [], [], []
for seed, (kind, (seconds, spread)) in enumerate(rhythm.items()):
    visitor = POHMM.from_parameters(
        event_types=["view", "search", "basket", "pay"],
        startprob=[[0.5, 0.5]] * 4,
        transmat=np.tile([[0.7, 0.3], [0.5, 0.5]], (4, 4, 1, 1)),
        emission=[("lognormal", np.log(seconds), spread)],
        event_startprob=[0.7, 0.3, 0.0, 0.0],
        event_transmat=steps,
    )
    x, events, _ = visitor.sample(lengths=[12] * 80, random_state=seed)
    visits += np.split(x, 80)
    pages += np.split(events, 80)
    kinds += [kind] * 80
labels = np.array(kinds)

# %%
# Taken together, the times of disguised scripts are much like those of people.

figure, axes = plt.subplots(figsize=(6.2, 3.0), layout="constrained")
for kind in rhythm:
    waits = np.concatenate([visits[n] for n in np.flatnonzero(labels == kind)])[:, 0]
    bins = np.geomspace(0.5, 300, 50).tolist()
    axes.hist(waits, bins, histtype="step", linewidth=1.5, label=kind)
axes.set(title="Time between clicks", xscale="log", xlabel="seconds", ylabel="clicks")
axes.legend()

# %%
# It is a classifier of scikit-learn, so that cross-validation works as usual. Each
# visit is judged by models that have not seen it. Without the types of clicks the same
# classifier is one of HMMs.

data = Sequences.from_arrays(visits, pages)
classifier = POHMMClassifier(POHMM(n_states=2, tol=1e-2))
answers = {
    "times alone": cross_val_predict(classifier, data.without_events(), labels, cv=4),
    "with what was clicked": cross_val_predict(classifier, data, labels, cv=4),
}

matrices, panels = plt.subplots(1, 2, figsize=(6.2, 3.2), layout="constrained")
for axes, (name, found) in zip(panels, answers.items(), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        labels, found, ax=axes, colorbar=False, cmap="Blues", xticks_rotation=45
    )
    axes.set(
        title=f"{name}: {np.mean(found == labels):.0%}",
        xlabel="taken for",
        ylabel="kind of visitor",
    )

# sphinx_gallery_thumbnail_number = 2

# %%
# What to learn from it
# ---------------------
#
# The order of clicks is the same for all three kinds, and their times overlap. What
# gives the disguised scripts away is that they wait as long before a search as before
# they fill the basket. A model with the types of clicks can use that; a model of times
# alone cannot. Anything with types and intervals can be classified in this way, and
# everything that scikit-learn offers for choosing and testing classifiers applies
# (:doc:`/guide/sklearn`).
