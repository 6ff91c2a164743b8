"""What every study stands on: resuming, outputs, tables, report, page."""
