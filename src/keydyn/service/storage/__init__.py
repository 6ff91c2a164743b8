"""Storage of the service: tables, transactions, encryption, the audit log."""
