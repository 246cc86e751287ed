"""Authorize requests by a bearer token. If none is configured, allow only those of this machine.

Without a token `Host` must be a loopback name, as a web page may point its own name at 127.0.0.1
(DNS rebinding), and `Origin` must be a page of this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import AsyncIterable, Mapping
from pathlib import Path

from toolmem.config.environment import is_loopback
from toolmem.config.sections import AuthSection
from toolmem.errors import ConfigError, Conflict, ModelError, RequestError, StoreError, ToolMemError

_STATUSES = {RequestError: 422, Conflict: 409, StoreError: 503, ModelError: 502}  # else 500


class Refused(Exception):
    """Raised to answer a request with this HTTP `status`. `back`: a page to link to."""

    def __init__(self, status: int, message: str, back: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.back = back


def status_of(error: Refused | ToolMemError) -> int:
    """Return the HTTP status that answers an error, such as 422 for RequestError."""
    if isinstance(error, Refused):
        return error.status
    return next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), 500)


class Access:
    """Decides which requests are answered: those with `token` or, if it is "", local ones."""

    def __init__(self, token: str = "") -> None:
        self._digest = hashlib.sha256(token.encode()).digest() if token else b""

    @property
    def needs_token(self) -> bool:
        return bool(self._digest)

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has the token; True if none is configured."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else ""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        return not self._digest or hmac.compare_digest(digest, self._digest)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises Refused unless the request has the token or, without one, is a local request."""
        if not self.has_token(headers):
            raise Refused(401, "Authorization: expected `Bearer <the configured token>`")
        if self._digest:
            return
        remedy = "configure a token (TOOLMEM_TOKEN, or auth.token_file) to allow other names"
        if not is_loopback(headers.get("host", "")):
            raise Refused(403, f"Host: expected 127.0.0.1, [::1] or localhost; {remedy}")
        origin = headers.get("origin", "")
        if origin and not is_loopback(origin.partition("://")[2]):
            raise Refused(403, f"Origin: a web page of another host is refused; {remedy}")


def read_token(auth: AuthSection) -> str:
    """Read the token from `auth.token_file`, else `auth.token_env`, else "". Raises ConfigError."""
    where = auth.token_env
    token = os.environ.get(auth.token_env, "").strip()
    if auth.token_file:
        where = "auth.token_file"
        try:
            token = Path(auth.token_file).expanduser().read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            problem = f"{auth.token_file} cannot be read ({type(error).__name__})"
            raise ConfigError([f"{where}: {problem}"]) from None
    elif not token:
        return ""
    if not re.fullmatch("[!-~]+", token):
        raise ConfigError([f"{where}: expected a token of visible ASCII characters without blanks"])
    return token


async def read_body(chunks: AsyncIterable[bytes], limit: int, shown: str) -> bytes:
    """Join a body's chunks. Raises Refused over `limit` bytes. `shown`: the limit as "32 MB"."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise Refused(413, f"body: over {shown}")
    return bytes(body)
