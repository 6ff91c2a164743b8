"""The WebSocket protocol of watched sessions, as uvicorn speaks it."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class SessionProtocol(WebSocketsSansIOProtocol):
    """WebSockets whose server can stop at the moment in which a client leaves."""

    def shutdown(self) -> None:
        """Say goodbye to the client, unless the connection is being closed already.

        uvicorn would send a second close frame, which raises `InvalidState`: the other connections would not
        be told, and the application would not be asked to end.
        """
        if self.transport is not None and self.transport.is_closing():
            self.stop_keepalive()
            return
        super().shutdown()
