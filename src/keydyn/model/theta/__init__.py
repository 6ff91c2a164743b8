"""The parameters of a model: tables, start values, the event chain, and parameters given by a caller."""
