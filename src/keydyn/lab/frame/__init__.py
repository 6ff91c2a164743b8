"""The parts that all studies share: resuming, outputs, tables, reports and pages of results."""
