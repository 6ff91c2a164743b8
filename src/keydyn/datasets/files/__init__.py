"""Recordings in files: CSV and Parquet tables, and JSON, in any layout."""
