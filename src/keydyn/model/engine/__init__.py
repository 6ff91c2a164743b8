"""The compiled loops, which work on arrays and know nothing about the classes above them."""
