"""Find out how much typing is enough
==================================

Evidence adds up from key to key. How many keys does it take until a typist is
recognised, and does the choice of detector matter more than the length of the text?

The typists are simulated, and were made about as different from each other as real
people are. Read the shape of the curves, not their heights; for real recordings see the
:doc:`results page </results>`.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.evaluation import (
    Enrolment,
    enrolments,
    identification,
    scores_after,
    verification,
)
from keydyn.keystrokes import Samples
from keydyn.lab.frame.names import detector_name

samples = Samples.of(make_typists(30, 6, text="free", n_keys=160, random_state=6))
protocol = Enrolment(3)  # three samples enrol, the other three are asked about
n_keys = [2, 5, 10, 20, 40, 80, 160]

# %%
# The score of a sample is the sum of what each key contributes. So the templates are
# fitted once, and the sums are taken over the first keys of each sample.

results = {}
for name in ("hmm", "pohmm-recommended", "population"):
    enrolled = enrolments(protocol, name, samples)
    results[name] = scores_after(protocol, enrolled, samples, n_keys)

# %%
# Bands are 95 % intervals over people: thirty other typists would have given another
# curve within them. In verification the impostors here are strangers, whose own
# template is left out of the comparison.

figure, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(6.2, 5.4), layout="constrained"
)
for name, after in results.items():
    accuracy = [identification(scores, replicates=200).accuracy for scores in after]
    errors = [
        verification(scores, open_set=True, replicates=200).own["eer"]
        for scores in after
    ]
    for axes, rates in ((above, accuracy), (below, errors)):
        values = [rate.value for rate in rates]
        low, high = np.array([(rate.low, rate.high) for rate in rates], dtype=float).T
        (line,) = axes.plot(
            n_keys, values, "o-", markersize=4, label=detector_name(name)
        )
        axes.fill_between(
            n_keys, low, high, color=line.get_color(), alpha=0.15, linewidth=0
        )
above.set(title="Who is it? 30 people", ylabel="accuracy", ylim=(0, 1.02))
below.set(
    title="Is it who they say?",
    ylabel="equal error rate",
    xlabel="keys typed",
    ylim=(0, None),
)
below.set_xscale("log")
below.set_xticks(n_keys, [str(n) for n in n_keys])
below.minorticks_off()
above.legend(loc="lower right")

# %%
# What to learn from it
# ---------------------
#
# Before you tune a detector, ask for more keys: most of the gain comes from the first
# forty, whatever the detector. A detector that takes the key into account needs fewer
# of them. Short texts such as a PIN can only be a hint; a sentence or two is where
# recognition becomes useful.
