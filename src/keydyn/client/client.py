"""The client of the service, with one method per route."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from msgspec import structs

from keydyn.client.calls import Calls, Connecting, Keystrokes, sample
from keydyn.client.watched_session import ServiceWatch
from keydyn.service.wire.answers import (
    Decision,
    DecisionRecord,
    Erased,
    Identification,
    NewWebhook,
    ReceiptKey,
    Sample,
    Token,
    User,
    UsersAnswer,
    Webhook,
    WebhooksAnswer,
)
from keydyn.service.wire.both_ways import Settings
from keydyn.service.wire.requests import (
    ClaimBody,
    IdentifyBody,
    NewSample,
    NewUser,
    TokenBody,
    TypedText,
    WebhookBody,
)
from keydyn.service.wire.watch_frames import Hello


class Client:
    """A client of a service; threads may share it.

    Requests are sent again after a lost connection, and when the service is busy; any other problem is raised
    at once. A write takes effect only once, even if it is sent several times.

    Parameters
    ----------
    url : the address of the service, such as "https://keydyn.example.com"
    key : an API key
    timeout_s : how long the service may be silent before a request is sent again
    patience_s : how long a request is repeated altogether
    allow_http : send the key without encryption to other machines than this one
    proxy : the address of an HTTP proxy to connect through; proxies named by the environment are not used

    Examples
    --------
    A person is enrolled and recognised.

    >>> import os
    >>> from keydyn.client import Client
    >>> from keydyn.datasets import make_typists
    >>> typed = make_typists(1, 8, "free", 60)  # or a list of (key, press, release)
    >>> service = Client("http://127.0.0.1:8421", os.environ["KEY"])
    >>> user = service.create_user("ada")
    >>> samples = [service.enrol("ada", typed[typed["session"] == n]) for n in range(5)]
    >>> decision = service.verify("ada", typed[typed["session"] == 5], level="high")
    >>> decision.answer, decision.judged_level, decision.evidence.keystrokes
    ('accept', 'high', 60)
    >>> record = service.decision(decision.id)  # as your server looks it up later
    >>> record.user, record.kind
    ('ada', 'verify')
    >>> found = service.identify(typed[typed["session"] == 6], most=3)
    >>> found.candidates[0].user
    'ada'
    >>> with service.watch("ada") as watch:
    ...     trusts = watch.send(typed[typed["session"] == 7])
    >>> trusts[-1].keystroke, trusts[-1].trust > 0.5, watch.locked
    (60, True, False)

    What is stored about a person can be seen and erased.

    >>> ada = service.user("ada")
    >>> [(profile.text.kind, profile.samples, profile.complete) for profile in ada.profiles]
    [('free', 5, True)]
    >>> sorted(service.export("ada"))[:3]
    ['audit', 'created_at', 'decisions']
    >>> service.unblock("ada", restore_budget=True).takeover_chance_spent
    0.0
    >>> erased = service.erase("ada")
    >>> "ada" in [user.id for user in service.users()]
    False

    Browsers get tokens, and the service reports events to your server.

    >>> token = service.token(service.create_user("cleo").id, "enrol", seconds=120)
    >>> token.purpose, token.uses
    ('enrol', 5)
    >>> hook = service.create_webhook("https://hooks.example.com/keydyn", ["session.locked"])
    >>> webhooks = service.webhooks()
    >>> service.delete_webhook(hook.id)
    >>> settings = service.update_settings(levels={"high": 0.002})
    >>> settings.levels
    Levels(low=0.05, standard=0.01, high=0.002)
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = 10.0,
        patience_s: float = 30.0,
        allow_http: bool = False,
        proxy: str | None = None,
    ) -> None:
        self._url = _checked(url, allow_http, proxy)
        self._key, self._connecting = key, Connecting(timeout_s, patience_s, proxy)
        self._calls = Calls(self._url, key, self._connecting)

    def __repr__(self) -> str:
        """The service's address, without the key."""
        return f"Client({self._url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._calls.close()

    def create_user(self, id: str | None = None) -> User:
        """Create a person, with a random id if none is given."""
        return self._calls.call(User, "POST", "/v1/users", NewUser(id))

    def user(self, id: str) -> User:
        """Fetch a person and the progress of their enrolment."""
        return self._calls.call(User, "GET", _path(id))

    def users(self, *, per_page: int = 100) -> Iterator[User]:
        """Iterate over all people, the oldest first, fetched `per_page` at a time, at most 200."""
        query: dict[str, str | int] = {"limit": per_page}
        while True:
            page = self._calls.call(UsersAnswer, "GET", "/v1/users", query=query)
            yield from page.users
            if page.next is None:
                return
            query["cursor"] = page.next

    def erase(self, id: str) -> Erased:
        """Erase a person and everything that is stored about them."""
        return self._calls.call(Erased, "DELETE", _path(id))

    def export(self, id: str) -> dict[str, Any]:
        """Return everything that is stored about a person."""
        return self._calls.call(dict[str, Any], "GET", _path(id, "export"))

    def reset(self, id: str) -> User:
        """Start a person's enrolment again."""
        return self._calls.call(User, "POST", _path(id, "reset"))

    def unblock(self, id: str, *, restore_budget: bool = False) -> User:
        """Clear consecutive failed attempts to be a person, so that the next need not wait.

        With `restore_budget`, the cost of failed attempts in the last 30 days is forgotten too: the chance
        that strangers are accepted is then counted from 0 again.
        """
        query = {"restore_budget": "true"} if restore_budget else None
        return self._calls.call(User, "POST", _path(id, "unblock"), query=query)

    def second_factor(self, id: str) -> User:
        """Report that a person has proved their identity in another way; the next attempt need not wait."""
        return self._calls.call(User, "POST", _path(id, "second-factor"))

    def enrol(
        self,
        id: str,
        keystrokes: Keystrokes,
        *,
        text: str = "free",
        device: str = "keyboard",
        add: bool = False,
    ) -> Sample:
        """Add a sample to a person's enrolment; it is stored when this returns.

        A complete enrolment takes no more samples. With `add` its template is updated by the sample, if the
        sample is recognised as the person's at the level "high".

        Keystrokes are tuples of key, press and release in milliseconds, mappings with `keyname`, `timepress`
        and `timerelease`, a data frame with these columns, or raw events. The text is "free", "fixed:NAME" or
        "positions:NAME"; the device is "keyboard" or "phone".
        """
        body = NewSample(**_sample(keystrokes, text, device, add=add))
        return self._calls.call(Sample, "POST", _path(id, "samples"), body)

    def verify(
        self,
        id: str,
        keystrokes: Keystrokes,
        *,
        level: str = "standard",
        text: str = "free",
        device: str = "keyboard",
    ) -> Decision:
        """Decide whether this person typed a sample.

        After failed attempts `judged_level` of the decision may be stricter than `level`.
        """
        body = ClaimBody(**_sample(keystrokes, text, device, level=level))
        return self._calls.call(Decision, "POST", _path(id, "verify"), body)

    def identify(
        self,
        keystrokes: Keystrokes,
        *,
        level: str = "standard",
        text: str = "free",
        device: str = "keyboard",
        most: int = 10,
    ) -> Identification:
        """Identify who typed a sample, or find that none of the enrolled people did."""
        body = IdentifyBody(**_sample(keystrokes, text, device, level=level, most=most))
        return self._calls.call(Identification, "POST", "/v1/identify", body)

    def decision(self, id: str) -> DecisionRecord:
        """Look up a decision by its id; decisions are kept for 30 days."""
        return self._calls.call(DecisionRecord, "GET", f"/v1/decisions/{quote(id, safe='')}")

    def receipt_key(self) -> str:
        """Fetch the public key with which `check_receipt` checks receipts of decisions."""
        return self._calls.call(ReceiptKey, "GET", "/v1/receipts/key").key

    def token(
        self,
        id: str,
        purpose: str,
        *,
        session: str | None = None,
        seconds: int = 600,
        text: str = "free",
        device: str = "keyboard",
        level: str = "standard",
        uses: int | None = None,
    ) -> Token:
        """Make a token with which a browser may "enrol", "verify", "watch" or "unlock" for one person.

        It is valid for this text, device and level, and for `uses` samples: by default as many as an
        enrolment needs, or 5 to verify.
        """
        fields: dict[str, Any] = {"purpose": purpose, "device": device, "level": level, "uses": uses}
        body = TokenBody(**fields, seconds=seconds, session=session, text=TypedText.parse(text))
        return self._calls.call(Token, "POST", _path(id, "token"), body)

    def watch(
        self, id: str, *, text: str = "free", device: str = "keyboard", session: str | None = None
    ) -> ServiceWatch:
        """Watch a person type, in a `with` block; `session` continues an earlier one."""
        address = "ws" + self._url.removeprefix("http") + _path(id, "watch")
        kind, name = structs.astuple(TypedText.parse(text))
        hello = Hello(text={"kind": kind, "name": name} if name else {"kind": kind}, device=device)
        return ServiceWatch(address, self._key, hello, session, self._connecting)

    def settings(self) -> Settings:
        """Fetch the tenant's settings."""
        return self._calls.call(Settings, "GET", "/v1/settings")

    def update_settings(self, **changes: Any) -> Settings:
        """Change some settings and keep the others; `levels` may name some of the levels."""
        now = self._calls.call(dict[str, Any], "GET", "/v1/settings")
        changes = {**changes, "levels": {**now["levels"], **changes.get("levels", {})}}
        return self._calls.call(Settings, "PUT", "/v1/settings", {**now, **changes})

    def create_webhook(self, url: str, events: Sequence[str]) -> NewWebhook:
        """Have events reported to an address; the secret that signs the reports is only returned here."""
        fields: dict[str, Any] = {"events": list(events)}
        return self._calls.call(NewWebhook, "POST", "/v1/webhooks", WebhookBody(url, **fields))

    def webhooks(self) -> tuple[Webhook, ...]:
        """List all webhooks."""
        return self._calls.call(WebhooksAnswer, "GET", "/v1/webhooks").webhooks

    def delete_webhook(self, id: str) -> None:
        """Delete a webhook, so that nothing more is sent to it."""
        self._calls.call(Webhook, "DELETE", f"/v1/webhooks/{quote(id, safe='')}")


def _path(id: str, what: str = "") -> str:
    return f"/v1/users/{quote(id, safe='')}" + (f"/{what}" if what else "")


def _sample(keystrokes: Keystrokes, text: str, device: str, **more: Any) -> dict[str, Any]:
    return {**sample(keystrokes), "text": TypedText.parse(text), "device": device, **more}


def _checked(url: str, allow_http: bool, proxy: str | None) -> str:
    """Check the address, and return it without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"the service's address is like https://keydyn.example.com, not {url!r}")
    here = _is_this_machine(parts.hostname) and proxy is None
    if parts.scheme == "http" and not allow_http and not here:
        raise ValueError("the API key would be sent without encryption: use https://, or allow_http=True")
    return url.rstrip("/")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
