"""Verify a claim at a known false-match rate
==========================================

A person types and claims to be somebody. Is it true? A score alone cannot answer that:
a rule has to define which score is high enough. The verifier learns that from people
who are not involved, and states with every decision how many strangers would have
scored as high.

All typists are simulated, so that these error rates are not those of real people. What
was measured with those is in :doc:`/guide/decisions`.
"""

import matplotlib.pyplot as plt
import numpy as np

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier

typing = make_typists(60, 6, text="copied", n_keys=40, random_state=2)
user, session = typing["user"], typing["session"]
verifier = Verifier.learn(typing[(user < 30) & (session < 4)])

# %%
# The verifier was calibrated on thirty people, who take no further part. Ten others
# enrol with three samples each. Then each of them types three more samples, and twenty
# strangers type three samples each in the name of everyone who is enrolled.

enrolled = range(30, 40)
for number in enrolled:
    known = typing[(user == number) & (session < 3)]
    verifier.enrol(f"user {number}", known)

later = typing[(session >= 3) & (user >= 30)]
genuine, strangers = [], []
for number in enrolled:
    claimed = f"user {number}"
    genuine += verifier.verify_many(claimed, later[later["user"] == number])
    strangers += verifier.verify_many(claimed, later[later["user"] >= 40])

figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
bins = np.linspace(-8, 8, 41).tolist()
for decisions, label in ((strangers, "strangers"), (genuine, "genuine")):
    ratios = np.clip([decision.llr for decision in decisions], -8, 8)
    weights = np.full(len(ratios), 1 / len(ratios))
    name = f"{label} ({len(ratios)} claims)"
    axes.hist(ratios, bins, weights=weights, alpha=0.6, label=name)
lowest = min(decision.llr for decision in genuine + strangers if decision.accepted)
axes.axvline(lowest, color="black", linestyle="--", label="accepted from here on")
axes.set(
    title="Evidence for each claim",
    xlabel="log-likelihood ratio (nats)",
    ylabel="share of claims",
)
axes.legend(loc="upper center")

accepted = [
    np.mean([decision.accepted for decision in some]) for some in (genuine, strangers)
]
print(f"accepted: {accepted[0]:.1%} of genuine claims, {accepted[1]:.1%} of strangers'")

# %%
# The target was one stranger in a hundred. Is the stated rate right at other levels,
# too? For each stated rate, count the strangers whose claim would be accepted there.

stated = np.array([decision.false_match_rate for decision in strangers])
own = np.array([decision.false_match_rate for decision in genuine])
targets = np.geomspace(0.005, 0.5, 15)

rates, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
axes.plot(targets, targets, color="0.5", linewidth=0.8, label="as stated")
false_match = [np.mean(stated <= rate) for rate in targets]
axes.plot(targets, false_match, "o-", label="strangers accepted")
false_non_match = [np.mean(own > rate) for rate in targets]
axes.plot(targets, false_non_match, "s-", label="genuine not accepted")
axes.set(title="Errors at each stated false-match rate", xscale="log", ylim=(0, 1))
axes.set_yscale("symlog", linthresh=0.01)
axes.set(xlabel="stated false-match rate", ylabel="share of claims (observed)")
rates.legend(loc="outside lower center", ncols=3)

# %%
# What to learn from it
# ---------------------
#
# Choose the share of strangers that you can live with, not a score. The calibration
# translates one into the other, for people whom it has never seen. Genuine users pay
# the price, which rises as the target falls. A stated rate can be wrong by a factor of
# two when it rests on thirty people, and a curve from twenty strangers is no more
# certain; ``decision.interval`` shows how far to trust it. More people, not more
# samples of each, make it better.
