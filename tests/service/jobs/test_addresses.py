"""Addresses of webhooks: none leads into the service's own network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest

from keydyn.service.jobs.webhooks import ForbiddenAddressError, check_address, is_public, resolved
from keydyn.service.problems import Problem

# From the registries of special-purpose addresses (IANA, RFC 6890), with forms of IPv6 that hide one of IPv4.
NOT_PUBLIC = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.2.1", "192.168.1.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "239.1.1.1",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1", "2002:7f00:1::", "2002:c0a8:101::1", "64:ff9b:1::1", "100::1", "::127.0.0.1",
    # Teredo, whose server may be public while the client is not; and ISATAP, with a public network before it.
    "2001:0:808:808:0:0:80ff:fffe", "2001:0:7f00:1::f7f7:f7f7", "2606:4700::5efe:10.0.0.1",
    "2606:4700::200:5efe:127.0.0.1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700:4700::1111",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(Problem, match="must be public"):
        check_address(f"https://{literal}/hook", allow_private=False)
    check_address(f"https://{literal}/hook", allow_private=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example.com", "http://hooks.example.com/", "ftp://hooks.example.com/", "https://",
        "https:///x",
        "https://ada:secret@hooks.example.com/", "https://localhost/", "https://LOCALHOST./",
        "https://a.localhost/",
        "https://hooks.example.com/#part", "https://hooks.example.com:99999/",
        "https://hooks.example.com/" + "a" * 2000,
        "https://hooks.example.com/\x00", "https://[::1", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_what_is_no_address_for_a_webhook(url: str) -> None:
    with pytest.raises(Problem) as caught:
        check_address(url, allow_private=False)
    assert (caught.value.status, caught.value.kind) == (422, "webhook-address")


def test_the_normal_form_of_an_address() -> None:
    assert (
        check_address("HTTPS://Hooks.Example.com:8443/a?b=c", False) == "https://hooks.example.com:8443/a?b=c"
    )
    assert check_address("https://bücher.example/", False) == "https://xn--bcher-kva.example/"


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.0.0.1", "2130706433", "017700000001", "127.0.0.1", "localhost"]
)
def test_names_and_odd_forms_of_loopback_are_refused_once_they_are_resolved(host: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        asyncio.run(resolved(host, 443, allow_private=False))


@pytest.mark.parametrize("second", ["10.0.0.1", "fe80::1%eth0", "::1"])
def test_one_address_that_is_not_public_is_enough_to_refuse_a_name(
    second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", second)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ForbiddenAddressError):
        asyncio.run(resolved("hooks.example.com", 443, allow_private=False))
    assert asyncio.run(resolved("hooks.example.com", 443, allow_private=True)) == ["8.8.8.8", second]
