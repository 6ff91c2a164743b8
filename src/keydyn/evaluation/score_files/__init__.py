"""Reading the score files of other systems, and writing ours in their formats."""
