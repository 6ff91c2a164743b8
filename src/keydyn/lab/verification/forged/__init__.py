"""Forged typing in the verification study: the people attacked, the attacks, and their success."""
