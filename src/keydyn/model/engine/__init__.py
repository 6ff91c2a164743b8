"""The compiled loops. They see arrays and know nothing of the classes above them."""
