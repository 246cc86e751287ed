"""Access control: the bearer token, the addresses that may be bound without one, and the names a browser may use.

A service on this machine's loopback address needs no token; anything else does. Without a token the `Host` of each
request must be a loopback name, so that a web page whose own name was pointed at 127.0.0.1 (DNS rebinding) stays out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from toolmem.config.environment import read_dotenv
from toolmem.errors import ConfigError
from toolmem.readers.loopback import is_loopback

if TYPE_CHECKING:
    from toolmem.config import Settings
    from toolmem.config.settings import AuthSettings

_SCHEME = "bearer "
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:\[\]/@%]+))(?::[0-9]{0,5})?")

Headers = Sequence[tuple[bytes, bytes]]  # of an ASGI scope: names in lower case


class BearerToken:
    """The token that requests must carry. It is never shown: not by `repr`, not in an error."""

    def __init__(self, token: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()

    def admits(self, authorization: str) -> bool:
        """Is this the value of an `Authorization` header that carries the token? Takes as long for any wrong one."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        given = authorization[len(_SCHEME) :].strip()
        # Digests are of one length, so that the comparison does not tell how long the token is.
        return hmac.compare_digest(hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest(), self._digest)


def read_token(auth: AuthSettings, *, env: Mapping[str, str] | None = None) -> BearerToken | None:
    """The configured token: from `auth.token_file` where it is set, else from the variable `auth.token_env`.

    `env`: default the real environment, with `.env` of the working directory behind it. None where no token is
    configured. Raises ConfigError where the file cannot be read or what it holds is no token.
    """
    if auth.token_file is not None:
        return BearerToken(_checked(_from_file(auth.token_file), f"auth.token_file ({auth.token_file})"))
    variables = {**read_dotenv(Path(".env")), **os.environ} if env is None else env
    given = variables.get(auth.token_env, "").strip()
    return BearerToken(_checked(given, f"the variable {auth.token_env}")) if given else None


def _from_file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"auth.token_file: {name} cannot be read ({type(error).__name__})") from None


def _checked(token: str, where: str) -> str:
    """A header carries it, so it is visible ASCII without blanks."""
    if not token:
        raise ConfigError(f"{where}: is empty; expected a token")
    if not all("!" <= character <= "~" for character in token):
        raise ConfigError(f"{where}: a token holds no blanks and nothing but visible ASCII characters")
    return token


# ---------------------------------------------------------------- addresses


def check_address(section: str, host: str, token: BearerToken | None) -> list[str]:
    """Problems with binding `host`, which `<section>.host` names. Without a token only loopback is allowed.

    A file's 0.0.0.0 without a token was turned into 127.0.0.1 when the configuration was read; what arrives here was
    asked for on purpose.
    """
    if not host.strip():
        return [f"{section}.host: is empty; expected an address such as 127.0.0.1"]
    if token is not None or is_loopback(host):
        return []
    problem = f"{section}.host: {host} lets others in, and no token is configured"
    return [f"{problem}: set the variable that auth.token_env names (TOOLMEM_TOKEN) or auth.token_file"]


def check_origins(origins: Sequence[str], token: BearerToken | None) -> list[str]:
    """Problems with `http.cors_origins`: web pages that may read and write the memory from a browser."""
    problems = []
    for origin in origins:
        scheme, separator, rest = origin.partition("://")
        if origin == "*":
            if token is None:
                problems.append("http.cors_origins: '*' lets every web page in, which needs a token (auth.token_env)")
        elif not separator or scheme not in ("http", "https") or not rest or "/" in rest or "*" in rest:
            problems.append(f"http.cors_origins: expected an origin such as https://tools.example.org, got {origin!r}")
    return problems


def host_name(header: str) -> str:
    """The name in a `Host` header, without its port; "" where it is none."""
    found = _HOST.fullmatch(header.strip())
    return "" if found is None else (found["six"] or found["name"]).rstrip(".").lower()


def is_loopback_origin(header: str) -> bool:
    """Is this `Origin` a page that this machine serves?"""
    scheme, separator, host = header.partition("://")
    return bool(separator) and scheme in ("http", "https") and is_loopback(host_name(host))


class Denial(NamedTuple):
    """Why a request is refused, as an answer tells it."""

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = MappingProxyType({})


class AccessControl:
    """Decides on a request from its headers alone. Shared by the HTTP and the MCP service."""

    def __init__(self, token: BearerToken | None) -> None:
        self.token = token

    @classmethod
    def of(cls, settings: Settings, section: str) -> AccessControl:
        """For the service whose address `http` or `mcp` (`section`) holds. Raises ConfigError with all problems."""
        token, problems = None, []
        try:
            token = read_token(settings.auth)
        except ConfigError as error:
            problems += error.problems
        else:
            problems += check_address(section, getattr(settings, section).host, token)
        if section == "http":
            problems += check_origins(settings.http.cors_origins, token)
        if problems:
            raise ConfigError(problems)
        return cls(token)

    def knows(self, headers: Headers) -> bool:
        """Does the request carry the token? True where none is configured."""
        return self.token is None or self.token.admits(header(headers, b"authorization"))

    def admits_host(self, headers: Headers) -> bool:
        """Is the request meant for this service? With a token it may go by any name, without one by loopback's."""
        return self.token is not None or is_loopback(host_name(header(headers, b"host")))

    def admits_origin(self, headers: Headers, allowed: Sequence[str] = ()) -> bool:
        """May this web page ask, where one does? Without a token: of this machine, or one of `allowed`."""
        origin = header(headers, b"origin")
        return self.token is not None or not origin or is_loopback_origin(origin) or origin in allowed

    def refuses(self, headers: Headers, origins: Sequence[str] = (), *, openly: bool = False) -> Denial | None:
        """Why this request is refused, if it is. `origins`: of web pages that may ask; `openly`: it needs no token."""
        if not self.admits_host(headers):
            return Denial(403, "WrongHost", "Host: this service answers to localhost and 127.0.0.1 only")
        if not self.admits_origin(headers, origins):
            told = "Origin: without a token, pages of this machine and those of http.cors_origins alone may come in"
            return Denial(403, "WrongOrigin", told)
        if not openly and not self.knows(headers):
            told = "the token is missing or wrong; expected the header Authorization: Bearer <token>"
            return Denial(401, "Unauthorized", told, {"WWW-Authenticate": "Bearer"})
        return None


def header(headers: Headers, name: bytes) -> str:
    """The first header of that name, "" where there is none."""
    for key, value in headers:
        if key == name:
            return value.decode("latin-1")
    return ""
