"""Does the model fit? Goodness of fit, residuals."""
