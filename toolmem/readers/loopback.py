"""Addresses that reach nobody but this machine."""

from __future__ import annotations

import ipaddress

_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


def is_loopback(host: str) -> bool:
    """Does this address or name reach nobody but this machine?"""
    name = host.strip().rstrip(".").lower().removeprefix("[").removesuffix("]")
    if name in _NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
