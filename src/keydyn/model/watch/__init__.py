"""One event at a time: one stream, or many."""
