"""Where the service is, who asks, how long to wait: what both clients have in common."""

from __future__ import annotations

import math
import os
from typing import Any
from urllib.parse import urlsplit

from toolmem.errors import RequestError
from toolmem.readers.loopback import is_loopback

DEFAULT_URL = "http://127.0.0.1:8002"
TOKEN_VARIABLE = "TOOLMEM_TOKEN"
CONNECT_TIMEOUT = 5.0  # seconds
# An idle connection is given up long before the service would close it (600 s) and well within what proxies keep:
# a request must not meet the moment in which the other side hangs up.
IDLE = 3.0  # seconds
MAX_CONNECTIONS = 100


class ClientSettings:
    """Raises RequestError for an address, a token or a time that cannot be used; no message holds the token."""

    def __init__(self, base_url: str, token: str | None, timeout: float | None, retries: int) -> None:
        self.url = _checked_url(base_url)
        self._token = _checked_token(os.environ.get(TOKEN_VARIABLE) if token is None else token)
        self.timeout = _checked_timeout(timeout)
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise RequestError(f"retries: expected a whole number from 0, got {retries!r}", field="retries")
        self.retries = retries

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    def options(self) -> dict[str, Any]:
        """For httpx.Client and httpx.AsyncClient."""
        import httpx

        address = urlsplit(self.url)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connect = CONNECT_TIMEOUT if self.timeout is None else min(CONNECT_TIMEOUT, self.timeout)
        return {
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout, connect=connect),
            "limits": httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE),
            # What runs on this machine is not reached through a proxy, which would also see the token.
            "trust_env": not is_loopback(address.hostname or ""),
            "verify": address.scheme == "https",  # without TLS there is nothing to verify, and loading roots takes time
            "follow_redirects": False,
        }


def _checked_url(given: str) -> str:
    address = urlsplit(given) if isinstance(given, str) else urlsplit("")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise RequestError(
            f"base_url: expected an address such as {DEFAULT_URL}, got {str(given)[:100]!r}", field="base_url"
        )
    if address.username is not None or address.query or address.fragment:
        raise RequestError(
            "base_url: expected scheme, host, port and path alone; a token goes into `token`", field="base_url"
        )
    return given.rstrip("/")


def _checked_token(token: str | None) -> str:
    token = (token or "").strip()
    if not all("!" <= character <= "~" for character in token):
        raise RequestError(
            f"token (or {TOKEN_VARIABLE}): holds a character that no HTTP header can carry", field="token"
        )
    return token


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise RequestError(f"timeout: expected seconds above 0, or None, got {timeout!r}", field="timeout")
    return float(timeout)
