"""Who is let in: a bearer token, or a browser-safe loopback address without one.

Without a token the `Host` of a request must be a loopback name, so that a web page whose own name
was pointed at 127.0.0.1 stays out, and an `Origin` must be a page of this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolmem.config.sections import AuthSection
from toolmem.errors import ConfigError

Headers = Mapping[str, str]  # names in lower case
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:\[\]/@%]+))(?::[0-9]{0,5})?")


class Refused(Exception):
    """A request is not let in. `status`: of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Access:
    """Decides on a request. The token is never shown, and compared in constant time."""

    def __init__(self, token: str = "") -> None:
        self.needs_token = bool(token)
        self._digest = hashlib.sha256(token.encode()).digest()

    def knows(self, headers: Headers) -> bool:
        """Whether the request carries the token; True where none is needed."""
        if not self.needs_token:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else ""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(digest, self._digest)

    def check(self, headers: Headers) -> None:
        """Raises Refused, with the remedy."""
        if not self.knows(headers):
            raise Refused(401, "Authorization: expected `Bearer <the configured token>`")
        if self.needs_token:
            return
        remedy = "a configured token (TOOLMEM_TOKEN, or auth.token_file) lets other names in"
        if not is_loopback(host_name(headers.get("host", ""))):
            raise Refused(403, f"Host: expected 127.0.0.1, [::1] or localhost; {remedy}")
        origin = headers.get("origin", "")
        if origin and not is_loopback(host_name(origin.partition("://")[2])):
            raise Refused(403, f"Origin: a web page of another host may not ask; {remedy}")


def read_token(auth: AuthSection) -> str:
    """From `auth.token_file`, else the variable `auth.token_env`; "": none. Raises ConfigError."""
    if auth.token_file:
        try:
            text = Path(auth.token_file).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            problem = f"{auth.token_file} cannot be read ({type(error).__name__})"
            raise ConfigError([f"auth.token_file: {problem}"]) from None
        return _checked(text.strip(), "auth.token_file")
    given = os.environ.get(auth.token_env, "").strip()
    return _checked(given, auth.token_env) if given else ""


def _checked(token: str, where: str) -> str:
    if not token or not all("!" <= character <= "~" for character in token):
        raise ConfigError([f"{where}: expected a token of visible ASCII characters without blanks"])
    return token


def host_name(header: str) -> str:
    """The name in a `Host` header, without its port; "" where it is none."""
    found = _HOST.fullmatch(header.strip())
    return "" if found is None else (found["six"] or found["name"]).rstrip(".").lower()


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Of an ASGI scope."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
