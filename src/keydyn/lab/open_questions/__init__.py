"""Study: questions that the paper leaves open."""
