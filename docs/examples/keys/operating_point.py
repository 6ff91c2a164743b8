"""Choose an operating point by what errors cost
=============================================

Every threshold trades one error for the other: fewer strangers accepted, more genuine
users turned away. Which threshold is best? That depends on what each error costs you
and on how many claims are false, and not on the equal error rate.

The typists are simulated. Real typists give another curve; the reasoning stays the
same.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.decisions import Costs, Verifier
from keydyn.evaluation import ErrorCurve
from keydyn.lab.drawing.curves import det_figure
from keydyn.lab.drawing.panels import Curve
from keydyn.population import PopulationModel

typing = make_typists(50, 11, text="copied", n_keys=30, random_state=9)
user, session = typing["user"], typing["session"]
verifier = Verifier(PopulationModel.shipped())
verifier.calibrate(typing[(user < 24) & (session < 4)])

genuine, strangers = [], []
foreign = typing[(session >= 9) & (user >= 38)]
for number in range(24, 38):
    name = f"user {number}"
    verifier.enrol(name, typing[(user == number) & (session < 4)])
    own = typing[(user == number) & (session >= 4)]
    genuine += [decision.llr for decision in verifier.verify_many(name, own)]
    strangers += [decision.llr for decision in verifier.verify_many(name, foreign)]
genuine_llr, stranger_llr = np.sort(genuine), np.sort(strangers)
curve = ErrorCurve.of(genuine_llr, stranger_llr)

# %%
# A DET curve shows both errors at every threshold, on axes that stretch the small
# rates.

det = det_figure({"Verifier, 30 keys": {"population": Curve(curve.fmr, curve.fnmr)}})

# %%
# Now put a price on the errors. A shop loses 20 by accepting a stranger and 1 by asking
# a customer another question, and one claim in 100 is false. An office loses 500 by
# accepting a stranger, and one claim in 20 is false. Because scores are calibrated, the
# best threshold follows from these numbers alone (dashed lines), without a look at the
# curve.

thresholds = np.linspace(-6, 6, 200)
settings = {"shop": Costs(20, 1, prior=0.99), "office": Costs(500, 1, prior=0.95)}
costs, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for number, (name, at) in enumerate(settings.items()):
    accepted = 1 - np.searchsorted(stranger_llr, thresholds) / len(stranger_llr)
    rejected = np.searchsorted(genuine_llr, thresholds) / len(genuine_llr)
    false = (1 - at.prior) * at.false_match * accepted
    expected = false + at.prior * at.false_non_match * rejected
    colour = f"C{number}"
    axes.plot(thresholds, expected, color=colour, label=f"{name}: measured cost")
    label = f"{name}: threshold by its costs"
    axes.axvline(at.threshold, color=colour, linestyle="--", label=label)
axes.set(
    title="What a claim costs on average",
    xlabel="threshold: log-likelihood ratio (nats)",
    yscale="log",
)
axes.set(ylabel="expected cost per claim")
axes.legend(fontsize=8)

# sphinx_gallery_thumbnail_number = 2

# %%
# What to learn from it
# ---------------------
#
# Write down the two costs and the share of false claims, pass them as ``Costs`` and let
# the calibration do the rest. The curves are flat near their minimum, so rough figures
# will do. If others must be able to check the choice, give a target rate instead
# (``Targets``), as in :doc:`is_it_who_they_say`.
