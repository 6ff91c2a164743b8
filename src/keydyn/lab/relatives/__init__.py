"""Study: the POHMM beside its relatives."""
