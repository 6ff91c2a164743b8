"""The published datasets: their descriptions, their sources, and how to read them."""
