"""The protocol of live sessions, if the server stops at the moment when a client leaves."""

from __future__ import annotations

from keydyn.service.live.socket_protocol import SessionProtocol
from tests.service.live.world import PEOPLE, Server, make_database
from tests.waiting import wait_until

RESTARTING = 1012


def test_a_client_that_leaves_does_not_keep_the_server_from_stopping(tmp_path, monkeypatch):
    stopped = []

    def close_and_stop(protocol, event):
        # The server stops between a client's last frame and the loss of its connection.
        monkeypatch.undo()
        protocol.handle_close(event)
        assert protocol in protocol.connections
        for connection in list(protocol.connections):
            connection.shutdown()
        stopped.append(protocol)

    database = make_database(f"sqlite:///{tmp_path}/service.db")
    with Server(database) as server:
        leaving, staying = server.connect(PEOPLE[0]), server.connect(PEOPLE[1])
        monkeypatch.setattr(SessionProtocol, "handle_close", close_and_stop)
        leaving.socket.close()
        wait_until(lambda: stopped)
        assert staying.close_code() == RESTARTING
    database.close()
