"""Checks that a sample was typed by hand: copies, pasted text, regular times and forgeries are noticed."""
