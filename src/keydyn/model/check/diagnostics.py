"""The queries of a model about its fit: goodness of fit and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from keydyn.arrays import Floats, Given
from keydyn.model.check import areas, goodness
from keydyn.model.check import pseudo_residuals as residuals
from keydyn.model.check.goodness import GoodnessOfFit
from keydyn.model.data.fit_settings import check_number, generator_of
from keydyn.model.fit.estimator import Estimator
from keydyn.model.theta.lattice import EventIndex

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM


class Diagnostics(Estimator):
    """Mixin with methods that show whether a model fits, and where it does not."""

    def goodness_of_fit(
        self,
        X: Any,
        *,
        events: Any = None,
        lengths: Given = None,
        n_surrogates: int = 100,
        n_second: int = 0,
        refit: bool = True,
        feature: int | None = None,
        scale: str = "auto",
        marginal: str = "exact",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> GoodnessOfFit:
        """Monte Carlo test by the area between the empirical and the model's distribution function.

        A model with these settings is fitted to the data, and to `n_surrogates` surrogates drawn along the
        same event sequences, each with its own random stream. With `refit=False` the hypothesis is this very
        model with its current parameters.

        `feature` is the feature whose marginal is compared, by default the leading one. Areas are taken over
        x (`scale="linear"`) or over ln x ("log"); "auto" means over x, as in the paper, unless x has no
        finite mean. `marginal` selects the model's distribution: "exact", Σ Π[ω] Π[j | ω] f(x; b[j | ω]);
        "printed", with Π[j] for Π[j | ω]; "states", Σ Π[j] f(x; b[j]), one distribution per state.

        With `n_second` surrogates of each surrogate, 2 or more, there is also a double-bootstrap p-value,
        `p_double`; 4 are enough, and take five times as long. The result does not depend on `n_jobs`.
        """
        n_surrogates = check_number("n_surrogates", n_surrogates, 1)
        if check_number("n_second", n_second, 0) == 1:
            raise ValueError(
                "n_second must be 0, or 2 or more: a single one does not show the variation by chance"
            )
        areas.check_marginal(marginal)
        if refit:
            sequences, _ = self._checked(X, events, lengths, None)
        else:
            sequences, _ = self._encoded(self._known(), X, events, lengths)
        wanted = self.leading_feature if feature is None else feature
        wanted = goodness.check_feature(wanted, sequences.n_features)
        plan = goodness.SurrogatePlan(n_surrogates, n_second, refit, n_jobs)
        own = cast("POHMM", self._as_it_is())
        fits = goodness.refits(own, sequences, generator_of(random_state), plan)
        return goodness.judged_by_areas(fits, wanted, scale, marginal)

    def forecast_residuals(
        self, X: Any, *, events: Any = None, lengths: Given = None, rosenblatt: bool = True
    ) -> Floats:
        """Φ⁻¹(F(x_n | x_1..n−1, Ω)), (N, K): independent and standard normal under the true model.

        With several features each is conditioned on those before it (Rosenblatt), or, with
        `rosenblatt=False`, taken by itself. Missing values give NaN. `keydyn.model.check_residuals` tests the
        residuals.
        """
        return self._residuals(X, events, lengths, False, rosenblatt)

    def ordinary_residuals(
        self, X: Any, *, events: Any = None, lengths: Given = None, rosenblatt: bool = True
    ) -> Floats:
        """Φ⁻¹(F(x_n | all other events, Ω)), (N, K), to find outliers: standard normal, but dependent."""
        return self._residuals(X, events, lengths, True, rosenblatt)

    def _residuals(self, X: Any, events: Any, lengths: Given, from_later: bool, rosenblatt: bool) -> Floats:
        state = self._known()
        sequences, codes = self._encoded(state, X, events, lengths)
        index = EventIndex.of(codes, sequences.offsets, state.parameters.n_types)
        return residuals.pseudo_residuals(state.parameters, sequences.X, index, from_later, rosenblatt)
