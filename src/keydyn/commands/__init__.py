"""The commands, one file a group. Each imports the numerical stack only when it runs."""
