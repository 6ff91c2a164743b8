"""Collecting typing for research: a page on this machine, prompts from a file, samples in the schema."""
