"""Whether a person typed a sample at all: copies, pasted text and times that are too regular."""
