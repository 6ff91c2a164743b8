"""What the service does for people: enrol, verify, identify, export, erase. Knows nothing of HTTP."""
