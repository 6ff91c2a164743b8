"""Find out what is wrong with a recording
=======================================

Recordings have faults that no model can undo: clocks that tick 64 times per second,
releases that were never seen, a sample in seconds where milliseconds were meant, the
same sample twice. Some of them make results look better than they are. The quality
report finds them before anything is fitted.

The typists are simulated, and the faults were put in on purpose, so that it is known
what has to be found.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from keydyn.datasets import make_typists
from keydyn.keystrokes import CleaningRules, clean, quality_of, timing_features

# User 1 has a clock that ticks every 15.625 ms.
fine, coarse = (
    make_typists(3, 6, "copied", 120, tick=tick, random_state=1)
    for tick in (None, 15.625)
)
recording = pd.concat(
    [fine[fine["user"] != 1], coarse[coarse["user"] == 1]], ignore_index=True
)
recording = recording.sort_values(["user", "session"], kind="stable", ignore_index=True)
typed = ["keyname", "timepress", "timerelease"]
user, session = recording["user"], recording["session"]
original = recording.loc[(user == 0) & (session == 1), typed]
recording.loc[(user == 0) & (session == 4), typed] = original.to_numpy()  # a copy
recording.loc[(user == 2) & (session == 3), typed[1:]] /= 1000  # in seconds
lost = (user == 2) & (session == 5) & (np.arange(len(recording)) % 5 == 0)
recording.loc[lost, "timerelease"] = np.nan  # releases that were never seen

# %%
# The report can be printed.

report = quality_of(recording)
print(report)

# %%
# It can also be used as data. Two numbers per sample reveal two of the faults; copies
# are named in ``report.duplicates``.

table = report.samples
names = [
    f"user {one}, session {number}"
    for one, number in zip(table["user"], table["session"], strict=True)
]
columns = {
    "tempo, compared with\nthe user's other samples": table["relative_tempo"],
    "share of keys\nwithout a release": table["missing_releases"] / table["keystrokes"],
}
figure, panels = plt.subplots(
    1, 2, sharey=True, figsize=(6.2, 4.4), layout="constrained"
)
for axes, (label, values) in zip(panels, columns.items(), strict=True):
    odd = np.abs(np.log(values)) > 1 if "tempo" in label else values > 0.1
    axes.barh(names, values, color=np.where(odd, "C1", "C0").tolist())
    axes.set_xlabel(label)
panels[0].set(xscale="log", title="Every sample at a glance")
panels[0].invert_yaxis()

# %%
# A coarse clock shows in the intervals: they fall on multiples of its tick.
# ``report.clocks`` has found the tick.

taus = timing_features(recording, first="missing")["tau"]
clocks, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
for number, colour in ((0, "C0"), (1, "C1")):
    tick = report.clocks["tick"][report.clocks["user"] == number].sum()
    found = f"tick of {tick:.2f} ms" if tick > 0 else "no tick found"
    own = taus[user == number]
    bins = np.arange(50, 300, 2).tolist()
    axes.hist(own, bins, color=colour, alpha=0.6, label=f"user {number}: {found}")
axes.set(title="Intervals of two users", xlabel="interval (ms)", ylabel="keys")
axes.legend()

# %%
# Some faults can be removed. Cleaning never changes a time: it drops copies, and marks
# releases that cannot be believed as missing.

cleaned, done = clean(recording, CleaningRules(duplicate_samples=True, long_holds=2000))
print(done)

# sphinx_gallery_thumbnail_number = 2

# %%
# What to learn from it
# ---------------------
#
# Look at the report before you look at any result. A copy that is in the training data
# and in the test data makes every detector look good. Two people with different clocks
# can be distinguished by their clocks, which has nothing to do with their typing. A
# sample in another unit has to be corrected at its source.
