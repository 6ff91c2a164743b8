"""What the documentation says of each study: its question, its answer, and how to read what it left."""
