"""Scores of any system, from files: figures, comparison and report."""
