"""The paper's five datasets: what they are, where they come from, and how they are read."""
