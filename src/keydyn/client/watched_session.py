"""A watched session over a WebSocket: keystrokes are sent, trust is received, lost connections replaced."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import structs
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from keydyn.client.calls import LATER, Connecting, Keystroke, Keystrokes, Patience, keystrokes, refusal
from keydyn.client.received import ServiceProblem, ServiceUnreachable, Trust, UnexpectedAnswerError, problem
from keydyn.service.wire import watch_frames
from keydyn.service.wire.answers import TypedBy
from keydyn.service.wire.both_ways import converted

Result = TypeVar("Result")
Received = TypeVar("Received", bound=msgspec.Struct)
# The longest time to close a connection, in seconds.
CLOSING_S = 2.0
# Codes with which the service ends a connection for good, as statuses; 4409: another client continued it.
TAKEN_OVER, TOO_LARGE = 4409, 1009
FOR_GOOD = {TOO_LARGE: 413, 4400: 400, 4401: 401, 4403: 403, 4404: 404, TAKEN_OVER: 409, 4413: 413}

# Lost connections are normal, and are reported by exceptions if at all.
_QUIET = logging.getLogger(f"{__name__}.connection")
_QUIET.setLevel(logging.CRITICAL)


class _LostError(Exception):
    """The connection can no longer be used; the reason is the cause of the exception."""


class ServiceWatch:
    """Watches one person type; use it in a `with` block, and from one thread.

    If a connection is lost, the next one continues the session: keystrokes that the service has not confirmed
    as durable are sent again.

    Attributes
    ----------
    session : its id, to continue it later or to make tokens for it
    locked : whether another person seems to be typing; nothing is judged until `unlock`
    typed : whether the last hundred keys examined were typed by hand: "yes", "no" or "unsure"
    restarted : whether the service had to begin again, because its template or population was replaced
    durable : the number of the last keystroke that the service has stored
    """

    def __init__(
        self,
        address: str,
        key: str,
        hello: watch_frames.Hello,
        session: str | None,
        connecting: Connecting,
    ) -> None:
        self._address, self._key, self._hello = address, key, hello
        self._connecting = connecting
        self.session, self.locked, self.restarted, self.durable = session, False, False, 0
        self.typed: TypedBy = "unsure"
        self._connection: ClientConnection | None = None
        self._closing = ExitStack()
        # Keystrokes that are not durable yet, the number of the last one, and this connection's progress.
        self._kept: list[Keystroke] = []
        self._last = self._sent = self._answered = 0
        self._keys_per_frame, self._frames_in_flight = 1, 1
        self._in_flight = 0

    def __repr__(self) -> str:
        """The session and its progress, without the key."""
        return f"<ServiceWatch of session {self.session}: {self._answered} keystrokes answered>"

    def __enter__(self) -> Self:
        self._insist(lambda patience: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._insist(self._bye)
        finally:
            self._drop()

    def send(self, given: Keystrokes) -> list[Trust]:
        """Send keystrokes, in order of press, and return the trust after each of them.

        Keystrokes without a judgement are left out: those of a locked session, and those whose answers were
        lost with a connection although the service had stored them.
        """
        new = keystrokes(given)
        before, found = self._last, dict[int, Trust]()
        self._kept += new
        self._last += len(new)
        try:
            self._insist(lambda patience: self._exchange(patience, found))
        except ServiceProblem:
            # Refused keystrokes, which were not answered, are not sent again.
            refused = self._last - max(self._answered, before)
            self._kept = self._kept[: max(0, len(self._kept) - refused)]
            self._last -= refused
            raise
        return [found[number] for number in sorted(found) if number > before]

    def unlock(self) -> None:
        """Restart a locked session with full trust, after the person has proved their identity otherwise."""
        self._insist(self._unlock)

    def _unlock(self, patience: Patience) -> None:
        self._exchange(patience, {})
        if self.locked:
            self._transmit(watch_frames.Unlock())
            self._receive(patience, watch_frames.Unlocked)
            self.locked, self.typed = False, "unsure"

    def _bye(self, patience: Patience) -> None:
        self._exchange(patience, {})
        self._transmit(watch_frames.Bye())
        self._stored(self._receive(patience, watch_frames.Durable).durable)

    def _exchange(self, patience: Patience, found: dict[int, Trust]) -> None:
        """Send the keystrokes that this connection has not sent yet, and take the answers."""
        while self._answered < self._last:
            while self._sent < self._last and self._in_flight < self._frames_in_flight:
                begin = self._sent - (self._last - len(self._kept))
                keys = list(islice(self._kept, begin, begin + self._keys_per_frame))
                self._transmit(watch_frames.KeysFrame(self._sent + 1, keys))
                self._sent += len(keys)
                self._in_flight += 1
            answer = self._receive(patience, watch_frames.TrustFrame)
            self._in_flight -= 1
            self._answered = answer.last
            self.locked, self.typed = self.locked or answer.locked, answer.typed
            pairs = zip(answer.trust, answer.suspicion, strict=True)
            found.update({n: Trust(n, *pair) for n, pair in enumerate(pairs, answer.first)})
            self._stored(answer.durable)

    def _stored(self, durable: int) -> None:
        """Forget the keystrokes up to this one, which need not be sent again."""
        self.durable = durable
        self._kept = self._kept[max(0, durable - (self._last - len(self._kept))) :]

    def _insist(self, work: Callable[[Patience], Result]) -> Result:
        """Do some work on this connection, or on another if it is lost."""
        patience = Patience(self._connecting.patience_s)
        # The last informative error, which is more useful to the caller than a later timeout.
        telling: ServiceProblem | UnexpectedAnswerError | None = None
        while True:
            try:
                if self._connection is None:
                    self._connect(patience)
                return work(patience)
            except _LostError as lost:
                self._drop()
                reason = lost.__cause__
                if isinstance(reason, ServiceProblem | UnexpectedAnswerError):
                    telling = reason
                if patience.wait(reason.retry_after if isinstance(reason, ServiceProblem) else None):
                    continue
                if isinstance(telling, ServiceProblem):
                    raise telling from None
                reason = telling or reason
                raise ServiceUnreachable(f"the service cannot be reached: {reason}") from reason
            except BaseException:
                self._drop()
                raise

    def _connect(self, patience: Patience) -> None:
        timeout = min(self._connecting.timeout_s, patience.left_s)
        headers = {"Authorization": f"Bearer {self._key}"}
        try:
            self._connection = self._closing.enter_context(
                connect(
                    self._address,
                    additional_headers=headers,
                    open_timeout=timeout,
                    close_timeout=CLOSING_S,
                    compression=None,
                    logger=_QUIET,
                    proxy=self._connecting.proxy,
                )
            )
        except InvalidStatus as error:
            answer = error.response
            refused = refusal(
                answer.status_code, answer.reason_phrase, answer.headers, bytes(answer.body or b"")
            )
            if answer.status_code in LATER:
                raise _LostError from refused
            raise refused from None
        except (OSError, InvalidHandshake) as error:
            raise _LostError from error
        self._transmit(structs.replace(self._hello, session=self.session))
        welcome = self._receive(patience, watch_frames.Welcome)
        durable = welcome.durable
        if durable < self._last - len(self._kept):
            raise UnexpectedAnswerError("the service has lost keystrokes of this session")
        self.session, self.locked = welcome.session, welcome.locked
        self.restarted = self.restarted or welcome.restarted
        self._keys_per_frame, self._frames_in_flight = welcome.keys_per_frame, welcome.frames_in_flight
        self._stored(durable)
        # Another client may have sent keystrokes meanwhile.
        self._last = max(self._last, durable)
        self._sent = self._answered = durable
        self._in_flight = 0

    def _drop(self) -> None:
        self._connection = None
        # Errors of a connection that is given up do not matter.
        with suppress(OSError, WebSocketException):
            self._closing.close()

    def _transmit(self, frame: watch_frames.ClientFrame) -> None:
        assert self._connection is not None
        try:
            self._connection.send(msgspec.json.encode(frame).decode())
        except ConnectionClosed as error:
            raise _ended(error) from error
        except OSError as error:
            raise _LostError from error

    def _receive(self, patience: Patience, kind: type[Received]) -> Received:
        """Wait for the next frame of this kind, and handle other frames that come before it."""
        assert self._connection is not None
        while True:
            try:
                text = self._connection.recv(
                    timeout=max(0.001, min(self._connecting.timeout_s, patience.left_s))
                )
            except ConnectionClosed as error:
                raise _ended(error) from error
            except OSError as error:
                # A timeout is an OSError too.
                raise _LostError from error
            frame = _parsed(text)
            if frame["type"] == kind.__struct_config__.tag:
                return _converted(frame, kind)
            if frame["type"] == "lock":
                self.locked = True
            elif frame["type"] == "problem":
                fields = {**frame, "type": frame.pop("problem", "")}
                refused = problem(fields, frame["status"], "the service refused a frame")
                if refused.status in LATER or refused.kind == "gap":
                    raise _LostError from refused
                raise refused


def _parsed(text: str | bytes) -> dict[str, Any]:
    """Parse a frame; one that cannot be parsed is taken as a sign of a broken connection."""
    try:
        frame = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _LostError from error
    if not isinstance(frame, dict) or "type" not in frame:
        raise _LostError from UnexpectedAnswerError("a frame has no type: is this the service's address?")
    return frame


def _converted(frame: dict[str, Any], kind: type[Received]) -> Received:
    try:
        return converted(kind, frame)
    except msgspec.ValidationError as error:
        raise _LostError from UnexpectedAnswerError(f"a frame of the service does not fit: {error}")


def _ended(closed: ConnectionClosed) -> Exception:
    """Make the exception for the end of a connection."""
    code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (0, "")
    if code not in FOR_GOOD:
        return _LostError()
    kind = "taken-over" if code == TAKEN_OVER else "closed"
    return problem({"type": kind}, FOR_GOOD[code], reason or f"the service closed the connection ({code})")
