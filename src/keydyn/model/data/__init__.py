"""What goes in: ragged sequences, the event vocabulary and the settings; all input checking."""
