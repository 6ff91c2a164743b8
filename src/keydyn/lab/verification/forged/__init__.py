"""Forged typing in the verification study: who is attacked, how, and what gets through."""
