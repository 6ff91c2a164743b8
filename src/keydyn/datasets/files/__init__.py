"""Readers of recording files: CSV and Parquet tables, and JSON, in any known layout."""
