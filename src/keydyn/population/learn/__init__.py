"""How a population is learnt from the samples of many people."""
