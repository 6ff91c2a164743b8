"""What a client sends when it connects, and what a session needs of the person if it is admitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.watching.watched import Watching
from keydyn.service.storage.sealing import DataKey
from keydyn.service.wire.frames import Hello


@dataclass(frozen=True)
class Arrival:
    """What a client sent when it connected.

    Attributes
    ----------
    user : in the path, as it was sent
    headers : of the request; names in any case
    client : the peer's address, empty if it is not known
    hello : the first frame, whose fields have the right types and sizes, no more
    """

    user: str
    headers: Mapping[str, str]
    client: str
    hello: Hello


@dataclass(frozen=True, eq=False, repr=False)
class Admitted:
    """What a session needs of the person it is in the name of.

    Attributes
    ----------
    session_id : of a session to continue; None for a new one
    enrolled : made with the background's population
    background_id : which tells backgrounds apart
    left_out : the person's place in the background's cohort, −1 for nowhere
    watching : sessions of one background, watched the same way, are advanced together
    actor : who connected, as the audit log names them
    may_unlock : whether this connection may unlock without a token
    """

    tenant_id: str
    user_id: str
    profile_id: str
    session_id: str | None
    enrolled: Enrolled
    background: Background
    background_id: str
    left_out: int
    watching: Watching
    data_key: DataKey
    actor: str
    may_unlock: bool


# A `Problem` refuses; both are called in a thread.
Admit = Callable[[Arrival], Admitted]
# Called with what was admitted, the session's id, and the token that is to unlock it.
CheckUnlock = Callable[[Admitted, str, str], None]
