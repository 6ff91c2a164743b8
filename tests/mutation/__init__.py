"""How many small faults in the source some test would notice: `make mutation`."""
