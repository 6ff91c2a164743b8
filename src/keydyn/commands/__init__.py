"""The commands, one file per group. Each imports the numerical stack only when it runs."""
