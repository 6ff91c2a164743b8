"""Score files of other systems, and ours in their forms."""
