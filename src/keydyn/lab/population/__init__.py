"""Study: the population model compared with the POHMM."""
