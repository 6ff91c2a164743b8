"""Live sessions: keystrokes in, trust after each of them out, over WebSockets."""
