"""What attackers try against a running service, and what they get."""
