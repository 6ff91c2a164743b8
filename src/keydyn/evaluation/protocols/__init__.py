"""Protocols: which samples train and which are queries, and the scores that follow."""
