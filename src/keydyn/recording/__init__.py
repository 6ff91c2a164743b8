"""Collecting typing for research with a page on this machine that shows prompts from a file."""
