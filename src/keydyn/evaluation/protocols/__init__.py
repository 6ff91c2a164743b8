"""Protocols: who trains and who tries, and the scores that follow."""
