"""Live sessions over WebSockets: clients send keystrokes, and get the trust after each of them."""
