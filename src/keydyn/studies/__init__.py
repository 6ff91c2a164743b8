"""The paper's studies, and the same for recordings of one's own."""
