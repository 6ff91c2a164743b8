"""Find out what is wrong with a recording
=======================================

Recordings have faults that no model can undo: clocks that tick 64 times per second, releases that were
never seen, a sample in seconds where milliseconds were meant, the same sample twice. Some of them make
results look better than they are. The quality report finds them before anything is fitted.

The typists are simulated, and the faults were put in on purpose, so that it is known what has to be found.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from keydyn.datasets import make_typists
from keydyn.keystrokes import CleaningRules, clean, quality_of, timing_features

# User 1 has a clock that ticks every 15.625 ms.
fine, coarse = (make_typists(3, 6, "copied", 120, tick=tick, random_state=1) for tick in (None, 15.625))
recording = pd.concat([fine[fine["user"] != 1], coarse[coarse["user"] == 1]], ignore_index=True)
recording = recording.sort_values(["user", "session"], kind="stable", ignore_index=True)
times = ["timepress", "timerelease"]
where = {
    name: (recording["user"] == user) & (recording["session"] == session)
    for name, user, session in (("original", 0, 1), ("copy", 0, 4), ("seconds", 2, 3), ("lost", 2, 5))
}
recording.loc[where["copy"], ["keyname", *times]] = recording.loc[
    where["original"], ["keyname", *times]
].to_numpy()
recording.loc[where["seconds"], times] /= 1000
lost = where["lost"] & (np.random.default_rng(2).random(len(recording)) < 0.2)
recording.loc[lost, "timerelease"] = np.nan

# %%
# The report can be printed.

report = quality_of(recording)
print(report)

# %%
# It can also be used as data. Three numbers per sample reveal two of the faults; the copies are named in
# ``report.duplicates``.

table = report.samples
names = [
    f"user {user}, session {session}" for user, session in zip(table["user"], table["session"], strict=True)
]
columns = {
    "tempo, compared with\nthe user's other samples": table["relative_tempo"],
    "share of keys\nwithout a release": table["missing_releases"] / table["keystrokes"],
}
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(6.2, 4.4), layout="constrained")
for axes, (label, values) in zip(panels, columns.items(), strict=True):
    odd = np.abs(np.log(values)) > 1 if "tempo" in label else values > 0.1
    axes.barh(names, values, color=np.where(odd, "C1", "C0").tolist())
    axes.set_xlabel(label)
panels[0].set(xscale="log", title="Every sample at a glance")
panels[0].invert_yaxis()

# %%
# A coarse clock shows in the intervals: they fall on multiples of its tick. ``report.clocks`` has found the
# tick.

taus = timing_features(recording, first="missing")["tau"]
clocks, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
for user, colour in ((0, "C0"), (1, "C1")):
    tick = report.clocks["tick"][report.clocks["user"] == user].sum()
    label = f"user {user}: " + (f"tick of {tick:.2f} ms" if tick > 0 else "no tick found")
    axes.hist(
        taus[recording["user"] == user], np.arange(50, 300, 2).tolist(), color=colour, alpha=0.6, label=label
    )
axes.set(title="Intervals of two users", xlabel="interval (ms)", ylabel="keys")
axes.legend()

# %%
# Some faults can be dealt with. No time is ever changed: a copy is dropped, and what cannot be believed is
# missing.

cleaned, done = clean(recording, CleaningRules(duplicate_samples=True, long_holds=2000))
print(done)

# %%
# What to learn from it
# ---------------------
#
# Look at the report before you look at any result. A copy that is in the training data and in the test data
# makes every detector look good. Two people with different clocks can be told apart by their clocks, which
# has nothing to do with their typing. A sample in another unit has to be corrected at its source.
