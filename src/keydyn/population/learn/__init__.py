"""Learning a population from the samples of many people."""
