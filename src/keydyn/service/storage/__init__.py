"""What the service keeps: tables, transactions, encryption, the audit log."""
