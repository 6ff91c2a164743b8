"""Protocols, metrics, significance, tables."""
