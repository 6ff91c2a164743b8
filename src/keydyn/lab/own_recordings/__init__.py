"""The command `keydyn evaluate`: the tables of the studies for a user's own recordings."""
