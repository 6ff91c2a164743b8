"""The WebSocket protocol of watched sessions, as uvicorn speaks it."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class SessionProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, for a server that may stop at the moment in which a client leaves."""

    def shutdown(self) -> None:
        """Close the connection, unless that is being done already.

        uvicorn would send a second close frame, which raises `InvalidState`: the server would neither close
        the other connections nor ask the application to end.
        """
        if self.transport is not None and self.transport.is_closing():
            self.stop_keepalive()
            return
        super().shutdown()
