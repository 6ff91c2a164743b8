"""The studies of the paper, as computations: they return tables and know nothing of files."""
