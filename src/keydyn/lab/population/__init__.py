"""Study: the population model beside the POHMM."""
