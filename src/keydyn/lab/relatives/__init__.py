"""Study: the POHMM compared with its relatives."""
