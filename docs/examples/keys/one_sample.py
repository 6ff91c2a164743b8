"""Enrol people with a single sample
=================================

No one likes to type ten texts before a program works. How good is recognition after
one? A POHMM learns each person from nothing. The population model has first learnt from
other people what typing is like and how people differ, so that one sample only has to
show where a new person stands among them.

The typists are simulated, and they all come from one population. With real people the
gain depends on how much those learnt from resemble those who enrol:
:doc:`/guide/population`.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.detectors import PopulationDetector, make_detector
from keydyn.evaluation import Enrolment, identification, score_protocol
from keydyn.keystrokes import Samples
from keydyn.lab.frame.names import detector_name
from keydyn.population import PopulationModel

typing = make_typists(80, 8, text="copied", n_keys=30, random_state=7)
teachers = Samples.of(typing[typing["user"] < 50], first="missing")
people = PopulationModel().fit(teachers)

# %%
# Thirty other people enrol with one to six samples each; everything that they type
# later is asked about. The 50 people from whom the population model was learnt are not
# among them.

newcomers = Samples.of(typing[typing["user"] >= 50])
detectors = {
    "hmm": make_detector("hmm"),
    "pohmm-recommended": make_detector("pohmm-recommended"),
    "population": PopulationDetector(population=people),
}
n_samples = [1, 2, 3, 4, 6]
figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for name, detector in detectors.items():
    found = [
        identification(score_protocol(Enrolment(n), detector, newcomers))
        for n in n_samples
    ]
    low, high = np.array(
        [(one.accuracy.low, one.accuracy.high) for one in found], dtype=float
    ).T
    rates = np.array([one.accuracy.value for one in found], dtype=float)
    (line,) = axes.plot(n_samples, rates, "o-", markersize=5, label=detector_name(name))
    axes.fill_between(
        n_samples, low, high, color=line.get_color(), alpha=0.15, linewidth=0
    )
axes.set(
    title="Who is it, of 30 people?",
    xlabel="enrolment samples of 30 keys each",
    ylabel="accuracy",
)
axes.set(xticks=n_samples, ylim=(0, 1.02))
axes.legend(loc="lower right")

# %%
# What does one sample reveal about a person? These are the hold times that the
# population model expects of user 55. After a single sample most of them have moved
# from people in general towards this person, some of them too far; the other samples
# put that right.

own = newcomers[newcomers.users == 55]
keys = list("etaoinshrdlu")
holds, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
templates = {"people in general": people.anyone()}
templates |= {f"samples of user 55: {n}": people.enrol(own[:n]) for n in (1, 6)}
for (label, template), marker in zip(templates.items(), "_os", strict=True):
    drawn = people.sample(template, keys * 200, random_state=0)
    held = drawn.groupby("keyname")["duration"].median()
    axes.plot(
        keys, held[keys], marker, label=label, color="0.3" if marker == "_" else None
    )
axes.set(
    title="Hold times expected of one person", xlabel="key", ylabel="median hold (ms)"
)
holds.legend(loc="outside lower center", ncols=3)

# %%
# What to learn from it
# ---------------------
#
# Where enrolment must be short, learn a population first: it is worth a sample or more
# per person. As samples accumulate, the models come closer to each other. If you have
# no recordings of other people, use the population that comes with keydyn
# (``PopulationModel.shipped()``).
