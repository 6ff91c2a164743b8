"""Checks of how well a model fits: goodness of fit and residuals."""
