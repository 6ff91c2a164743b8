"""Predict when the next mail is sent
==================================

A person sends, answers and forwards mail, sometimes at the desk and sometimes away from
it. How long until the next one? A single number would be wrong nearly always. The model
gives a distribution, which can be checked.

The mailbox is simulated from a POHMM. With a real one, the same check would also show
what the model leaves out: nights, weekends, holidays.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn import HMM, POHMM

# Typical minutes since the last mail, at the desk and away from it.
typical = {"answered": (4, 60), "forwarded": (1, 30), "sent": (30, 400)}
person = POHMM.from_parameters(
    event_types=list(typical),
    startprob=[[0.7, 0.3]] * 3,
    transmat=np.tile([[0.9, 0.1], [0.3, 0.7]], (3, 3, 1, 1)),
    emission=[("lognormal", np.log(list(typical.values())), 0.6)],
    event_transmat=[[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.5, 0.2, 0.3]],
)
minutes, kinds, _ = person.sample(1000, random_state=3)
past, later = slice(0, 800), np.arange(800, 1000)
model = POHMM(n_states=2).fit(minutes[past], events=kinds[past])
hmm = HMM(n_states=2).fit(minutes[past])

# %%
# Before each of the last two hundred mails, the model is given the last thirty and
# predicts the next. The type of the next mail is not known yet: the model weighs the
# types by how often they follow the last one.

seen = [minutes[n - 30 : n] for n in later]
events = [kinds[n - 30 : n] for n in later]
ahead = model.predict_next(seen, events=events)
low, middle, high = (ahead.quantile(q)[:, 0] for q in (0.1, 0.5, 0.9))
actual = minutes[later, 0]

figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
number = np.arange(70)
axes.fill_between(
    number,
    low[:70],
    high[:70],
    step="mid",
    color="C0",
    alpha=0.2,
    label="80 % interval",
)
axes.step(number, middle[:70], where="mid", color="C0", label="median")
inside = (actual >= low) & (actual <= high)
for hit, colour, label in ((True, "0.3", "inside"), (False, "C1", "outside")):
    here = inside[:70] == hit
    axes.plot(
        number[here], actual[:70][here], "o", markersize=4, color=colour, label=label
    )
axes.set(
    title=f"Predicted and actual: {np.mean(inside):.0%} of 200 inside", yscale="log"
)
axes.set(xlabel="mail", ylabel="minutes since the last one")
figure.legend(loc="outside lower center", ncols=4)

# %%
# Do intervals of 80 % and of 50 % hold? And what is it worth to know the types: of the
# past mails, and of the next one, for instance because it is being written?

known = model.predict_next(seen, events=events, next_event=kinds[later])
without = hmm.predict_next(seen)
promised = np.linspace(0.02, 0.98, 49)
kept, (left, right) = plt.subplots(
    1, 2, figsize=(6.2, 3.4), layout="constrained", width_ratios=[1, 1.1]
)
left.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
gains = {}
for name, forecast in (
    ("HMM", without),
    ("POHMM", ahead),
    ("POHMM, next\ntype known", known),
):
    level = np.array([forecast.cdf([value])[n, 0] for n, value in enumerate(actual)])
    left.plot(promised, [np.mean(level <= p) for p in promised], label=name)
    gains[name] = np.mean(
        [forecast.logpdf([value])[n] for n, value in enumerate(actual)]
    )
left.set(
    title="Are promises kept?",
    xlabel="promised probability",
    ylabel="share of mails below",
    aspect="equal",
)
left.legend(fontsize=7)
right.bar(
    list(gains), np.array(list(gains.values())) - gains["HMM"], color=["C0", "C1", "C2"]
)
right.set(title="What types are worth", ylabel="gain over the HMM (nats per mail)")

# %%
# What to learn from it
# ---------------------
#
# Ask for an interval, and check on later events that it holds. All three forecasts hold
# here, but they are not equally sharp: the more is known about the types, the narrower
# they are. A wide forecast that is right is better than a sharp one that is wrong.
