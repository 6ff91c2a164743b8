"""Scores turned into decisions, and what attackers get."""
