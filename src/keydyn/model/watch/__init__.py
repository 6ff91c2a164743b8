"""Online scoring, one event at a time, of one stream or many."""
