"""Error rates: curves, intervals, comparisons of detectors, and differences between groups of users."""
