"""The laboratory: the studies of keydyn. Other packages do not import it."""
