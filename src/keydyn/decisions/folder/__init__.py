"""Enrolled people in a folder, and as bytes for a database."""
