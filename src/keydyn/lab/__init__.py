"""The laboratory: the studies of keydyn. The core never imports it."""
