"""Follow a patient although measurements are missing
==================================================

A patient with a chronic illness comes for check-ups, for urgent visits and to a
specialist. Is the illness stable, or is this a flare? The time since the last visit and
a blood value are both evidence, but at many visits no blood was taken, and telephone
consultations were introduced only after the model had been fitted.

All patients are simulated from a model of the same kind as the one that is fitted. This
is an example of missing data, and not of medicine.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import POHMM, Sequences

# Typical days since the last visit, and C-reactive protein in mg/l: stable, in a flare.
days = {"check-up": (90, 40), "specialist": (60, 25), "urgent": (45, 7)}
protein = {"check-up": (4, 15), "specialist": (5, 20), "urgent": (8, 45)}
illness = POHMM.from_parameters(
    event_types=list(days),
    startprob=[[0.8, 0.2]] * 3,
    transmat=np.tile([[0.9, 0.1], [0.25, 0.75]], (3, 3, 1, 1)),
    emission=[
        ("lognormal", np.log(list(days.values())), 0.5),
        ("lognormal", np.log(list(protein.values())), 0.6),
    ],
    event_transmat=[[0.6, 0.2, 0.2], [0.5, 0.2, 0.3], [0.4, 0.3, 0.3]],
)
n_patients, n_visits = 150, 20
values, visits, flare = illness.sample(lengths=[n_visits] * n_patients, random_state=2)
random = np.random.default_rng(0)


def blanked(share: float) -> Sequences:
    """All visits, with this share of the blood values missing."""
    some = values.copy()
    some[random.random(len(some)) < share, 1] = np.nan
    return Sequences.from_arrays(some, visits, [n_visits] * n_patients)


# %%
# A missing value is simply left out; the visit still counts, and so does the time since
# the last one. Fit to 100 patients with 40 % of the values missing, and look at a
# patient who was not among them.

model = POHMM(n_states=2, leading_feature=1).fit(blanked(0.4)[:100])
patient = blanked(0.4)[117]
truth = flare[117 * n_visits : 118 * n_visits]
probability = model.predict_proba(patient)[:, 1]

figure, panels = plt.subplots(
    3, 1, sharex=True, figsize=(6.2, 5.8), layout="constrained"
)
number = np.arange(1, n_visits + 1)
panels[0].plot(number, patient.X[:, 0], "o-", color="0.4", markersize=4)
panels[0].set(title="Time between visits", ylabel="days", yscale="log")
panels[0].set_yticks([10, 30, 100], ["10", "30", "100"])
panels[1].plot(number, patient.X[:, 1], "o", color="C0")
for gap in number[np.isnan(patient.X[:, 1])]:
    panels[1].axvline(gap, color="0.85", linewidth=5, zorder=0)
panels[1].set(
    title="Blood value (grey: not taken)",
    ylabel="C-reactive\nprotein (mg/l)",
    yscale="log",
)
panels[1].set_yticks([3, 10, 30], ["3", "10", "30"])
panels[2].bar(number, truth, width=1.0, color="0.88", label="simulated flare")
panels[2].plot(number, probability, "o-", color="C1", label="found by the model")
panels[2].set(title="Is it a flare?", ylabel="probability", ylim=(0, 1.02))
panels[2].set_xticks(number, patient.labels(), rotation=90)
figure.legend(loc="outside lower center", ncols=2)
for axes in panels[:2]:
    axes.minorticks_off()

# %%
# How much is lost with the values? Here are fifty new patients with more and more
# values missing, and the same patients with a third of the visits called telephone
# consultations, a type that the model has never seen. For those it uses what holds for
# visits of any type.

later = np.arange(100, 150)
shares = np.linspace(0, 1, 11)
expected = flare[100 * n_visits :]
phoned = np.where(random.random(len(visits)) < 1 / 3, "telephone", visits)
known, unseen = [], []
for share in shares:
    some = blanked(float(share))
    other = Sequences.from_arrays(some.X, phoned, [n_visits] * n_patients)
    known.append(np.mean(model.predict(some[later]) == expected))
    unseen.append(np.mean(model.predict(other[later]) == expected))

lost, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axes.plot(100 * shares, known, "o-", label="types known")
axes.plot(100 * shares, unseen, "s-", label="a third of a type never seen")
axes.axhline(
    np.mean(expected == 0), color="0.5", linestyle=":", label="always called stable"
)
axes.set(
    title="States found in new patients",
    xlabel="blood values missing (%)",
    ylabel="share of visits right",
)
axes.legend()

# %%
# What to learn from it
# ---------------------
#
# Do not fill in missing values, and do not throw incomplete visits away: pass NaN, and
# the model uses what there is. Its answers become less certain, but there is no point
# at which it fails; the same holds for types that it has never seen. If an unknown type
# should be an error in your application, set ``handle_unknown="error"``.
