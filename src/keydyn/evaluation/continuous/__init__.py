"""Continuous verification: how soon an impostor is noticed, and how often a user is locked out."""
