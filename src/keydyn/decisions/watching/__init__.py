"""Watching sessions while they are typed."""
