"""Scores of samples under templates, and the evidence for and against a claim."""
