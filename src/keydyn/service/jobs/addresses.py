"""The addresses that a webhook may have: none inside the network in which the service runs.

A tenant chooses the address, the service connects to it: without a check, a tenant could make the service
talk to machines that only the service can reach. Names are resolved when a report is delivered, and the
connection goes to the very address that was checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# The only part of IPv6 that is handed out for public addresses, and addresses of IPv4 as translators between
# the two write them (RFC 6052).
HANDED_OUT = ipaddress.IPv6Network("2000::/3")
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


class ForbiddenAddressError(ValueError):
    """A webhook leads to an address that is not public."""


async def resolved(host: str, port: int, allow_private: bool) -> list[str]:
    """The addresses behind a name; a `ForbiddenAddressError` if one of them is not public."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    # An address with a zone ("fe80::1%eth0") is local to a link.
    if not allow_private and not all(
        "%" not in one and is_public(ipaddress.ip_address(one)) for one in addresses
    ):
        raise ForbiddenAddressError("the webhook leads to an address that is not public")
    return addresses


def is_public(address: IPAddress) -> bool:
    """Whether an address can be reached from anywhere, and is no hidden form of one that cannot."""
    if isinstance(address, ipaddress.IPv6Address):
        hidden = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in TRANSLATED:
            hidden.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        for one in hidden:
            if one is not None:
                return is_public(one)
        if address not in HANDED_OUT:
            return False
    return address.is_global and not address.is_multicast
