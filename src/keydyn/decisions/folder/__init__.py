"""Storing enrolled people in a folder, or as bytes for a database."""
