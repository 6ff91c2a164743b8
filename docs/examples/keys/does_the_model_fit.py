"""Check whether a model fits
==========================

One model can be better than another and still be wrong. Two checks show whether a model
describes the data: residuals, which show what it fails to explain, and a test, which
shows how surprising the data would be if the model were true.

The typist is simulated with two hidden states and with times that depend on the key. So
it is known which of the models is right, and whether the checks find that out.
"""

import matplotlib.pyplot as plt

from keydyn import HMM, POHMM
from keydyn.datasets import make_typists
from keydyn.figures import residuals_figure
from keydyn.keystrokes import sequences_of

# Without moods and the effect of the previous key, a simulated typist is a POHMM.
typing = make_typists(
    1, 5, "copied", 100, mood=0, digraphs=0, mistakes=0, first_user=1, random_state=4
)
data = sequences_of(typing, ["tau"], events="key", first="missing")

# %%
# The residual of a key is its interval on a standard normal scale, given all keys
# before it. If the model is right, the points lie on the line and the bars inside the
# band. One log-normal distribution is not enough: long intervals are longer than it
# allows. Nothing is wrong with their order, which the bars would show.

one_state = residuals_figure(HMM(n_states=1).fit(data), data)

# %%
# With two states and the keys, the points follow the line.

two_states = residuals_figure(POHMM(n_states=2, tol=1e-3).fit(data), data)

# %%
# The test compares the distribution of all intervals with the model's. How far apart
# would they be by chance? Surrogates show it: data drawn from the fitted model, to
# which the model is fitted again.

models = {
    "HMM, one state, exponential": HMM(n_states=1, emission="exponential", tol=1e-3),
    "HMM, one state, log-normal": HMM(n_states=1, tol=1e-3),
    "POHMM, two states, log-normal": POHMM(n_states=2, tol=1e-3),
}
figure, rows = plt.subplots(3, 1, figsize=(6.2, 5.4), layout="constrained")
for number, (axes, (name, model)) in enumerate(zip(rows, models.items(), strict=True)):
    test = model.goodness_of_fit(data, n_surrogates=99, random_state=1)
    axes.hist(test.surrogates, 20, color=f"C{number}", alpha=0.6, label="surrogates")
    axes.axvline(test.statistic, color="black", label="the data")
    axes.set(
        title=f"{name}: p = {test.p_one_sided:.2f}", ylabel="surrogates", xlim=(0, None)
    )
rows[-1].set_xlabel("area between the distribution functions of data and model (ms)")
rows[0].legend()

# sphinx_gallery_thumbnail_number = 3

# %%
# What to learn from it
# ---------------------
#
# The test shows *that* a model fails, the residuals show *where*: in the long
# intervals, in this case. The two see different things, so use both; an error in the
# order of intervals shows in the autocorrelation alone. A large p-value does not prove
# a model. It means that these data cannot distinguish it from the truth. See
# :doc:`/guide/goodness-of-fit` for how far to trust a small one.
