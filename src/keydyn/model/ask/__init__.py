"""Questions to a model: likelihood, hidden states, what comes next, joint likelihood, samples."""
