"""Enrolling people and recognising them: fit, users, score, identify, verify, watch."""
