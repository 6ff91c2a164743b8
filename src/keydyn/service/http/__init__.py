"""The service's HTTP and WebSocket interface."""
