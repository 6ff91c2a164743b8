"""The parameters of a model: what they mean, start values, the event chain, given parameters."""
