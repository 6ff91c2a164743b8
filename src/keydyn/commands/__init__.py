"""The commands, which import the numerical stack only when they run."""
