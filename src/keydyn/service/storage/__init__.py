"""Storage of the service: tables, transactions, encryption and the audit log."""
