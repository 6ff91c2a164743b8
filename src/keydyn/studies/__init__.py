"""The studies: from recordings to tables, figures and a report."""
