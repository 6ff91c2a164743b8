"""Enrolling, verifying and identifying people, and what their failed attempts cost."""
