"""One person: what samples say of them, and people drawn from the population."""
