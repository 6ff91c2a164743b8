"""Error rates: curves, intervals, comparisons, and whose errors they are."""
