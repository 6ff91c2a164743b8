"""Scores of whole samples under templates, and what speaks for and against a claim."""
