"""Sessions watched while they are typed."""
