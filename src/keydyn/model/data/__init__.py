"""The input of a model: ragged sequences, the event vocabulary, the settings, and all input checking."""
