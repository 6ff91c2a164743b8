"""The service's interface: HTTP and WebSocket."""
