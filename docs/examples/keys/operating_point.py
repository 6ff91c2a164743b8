"""Choose an operating point by what errors cost
=============================================

Every threshold trades one error for the other: fewer strangers accepted, more genuine users turned away.
Which threshold is best? That depends on what each error costs you and on how many claims are false, and not
on the equal error rate.

The typists are simulated; with real ones the curve lies higher, and the reasoning is the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.decisions import Costs, Verifier
from keydyn.evaluation.rates import ErrorCurve
from keydyn.figures.det import det_figure
from keydyn.figures.panels import Curve
from keydyn.population import PopulationModel

typing = make_typists(50, 8, text="copied", n_keys=30, random_state=9)
user, session = typing["user"], typing["session"]
verifier = Verifier(PopulationModel.shipped())
verifier.calibrate(typing[(user < 24) & (session < 4)].reset_index(drop=True))

genuine, strangers = [], []
queries = typing[(session >= 5) & (user >= 24)].reset_index(drop=True)
for number in range(24, 36):
    verifier.enrol(str(number), typing[(user == number) & (session < 5)].reset_index(drop=True))
    own, foreign = queries["user"] == number, queries["user"] >= 38
    genuine += [one.llr for one in verifier.verify_many(str(number), queries[own].reset_index(drop=True))]
    strangers += [
        one.llr for one in verifier.verify_many(str(number), queries[foreign].reset_index(drop=True))
    ]
curve = ErrorCurve.of(np.sort(genuine), np.sort(strangers))

# %%
# A DET curve shows both errors at every threshold, on axes that stretch the small rates.

det = det_figure({"Verifier, 30 keys": {"population": Curve(curve.fmr, curve.fnmr)}})

# %%
# Now put a price on the errors. A lenient shop loses 20 for an accepted stranger and 1 for a customer who
# must answer another question, and one claim in 100 is false. A strict office loses 500, and one claim in
# 20 is false. Scores are calibrated, so the best threshold follows from these numbers alone (dashed lines):
# nobody had to look at the curve.

thresholds = np.linspace(-6, 6, 200)
settings = {"shop": Costs(20, 1, prior=0.99), "office": Costs(500, 1, prior=0.95)}
costs, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for number, (name, at) in enumerate(settings.items()):
    accepted = np.array([np.mean(np.array(strangers) >= t) for t in thresholds])
    rejected = np.array([np.mean(np.array(genuine) < t) for t in thresholds])
    expected = (1 - at.prior) * at.false_match * accepted + at.prior * at.false_non_match * rejected
    axes.plot(thresholds, expected, color=f"C{number}", label=f"{name}: measured cost")
    axes.axvline(at.threshold, color=f"C{number}", linestyle="--", label=f"{name}: threshold by its costs")
axes.set(title="What a claim costs on average", xlabel="threshold: log-likelihood ratio (nats)", yscale="log")
axes.set(ylabel="expected cost per claim")
axes.legend(fontsize=8)

# %%
# What to learn from it
# ---------------------
#
# Write down the two costs and the share of false claims, pass them as ``Costs`` and let the calibration do
# the rest. The minimum of each curve is flat: a factor of two in the costs hardly matters, so rough figures
# will do. If somebody else must be able to check the choice, give a target rate instead (``Targets``), as
# in :doc:`is_it_who_they_say`.
