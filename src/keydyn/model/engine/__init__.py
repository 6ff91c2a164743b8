"""The compiled loops, which work on arrays and do not depend on the classes that call them."""
