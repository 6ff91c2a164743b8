"""Calibration: the likelihood ratios and error rates that scores stand for."""
