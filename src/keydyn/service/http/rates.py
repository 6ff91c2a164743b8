"""How many requests per second a caller may send: a key, a browser with its token, or an address."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from keydyn.service.problems import Problem

# The number of callers whose rate is remembered.
REMEMBERED_CALLERS = 10_000
# The part of a key's rate that one token may use.
OF_A_TOKEN = 0.1


class Rates:
    """Requests per second of each caller, limited by a token bucket; refused requests count as well."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = per_second, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, caller: str, share: float = 1.0) -> None:
        """Count a request of a caller, whose rate is this share of all; a `Problem` if there are too many."""
        now, rate = self._clock(), self._rate * share
        most = max(2 * rate, 1.0)
        with self._lock:
            left, then = self._left.pop(caller, (most, now))
            left = min(most, left + (now - then) * rate)
            self._left[caller] = max(left - 1.0, 0.0), now
            if len(self._left) > REMEMBERED_CALLERS:
                self._left.popitem(last=False)
        if left < 1.0:
            detail = f"{rate:g} requests per second are allowed."
            raise Problem(429, "too-many-requests", "Too many requests", detail, retry_after=1)


def by_address(address: str) -> str:
    """The caller whose rate counts requests without a valid key: a network of IPv6, which one client has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return f"peer {address}"
    if isinstance(found, ipaddress.IPv6Address):
        return f"peer {ipaddress.IPv6Network((int(found) >> 64 << 64, 64))}"
    return f"peer {address}"
