"""Who looks at the console: a signed cookie, a token against forged forms, and signing in.

Without a token in the configuration everybody on this machine sees the pages; with one, nobody who
did not sign in. Only who signed in changes rules, since an agent can send forms as well. `code` is
printed once in the terminal where `serve` was started: who enters it is the user, and their changes
may also loosen rules.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Mapping

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from toolmem.rules.changes import Actor
from toolmem.server.access import Access, Refused

COOKIE = "toolmem_visit"
MAX_AGE = 12 * 3600  # seconds for which a visit lasts


class Visit(Struct, frozen=True):
    """One browser. `level`: "" where nobody signed in, "token" or "terminal"."""

    level: str
    cookie: str  # its value
    csrf: str  # that a form of this visit must carry

    @property
    def may_change(self) -> bool:
        return bool(self.level)

    def actor(self, what: str) -> Actor:
        """In whose name rules are changed."""
        return Actor("user", "terminal" if self.level == "terminal" else "", f"console: {what}")


class Visitors:
    """Begins and recognizes visits; they end with the process. Only hashes of secrets are kept."""

    def __init__(self, access: Access, code: str = "") -> None:
        self.access = access
        self._key = os.urandom(32)
        self._lock = threading.Lock()
        self._code = self._sign("code", code) if code else ""  # "" once it was used

    @property
    def takes_code(self) -> bool:
        return bool(self._code)

    def visit_of(self, request: Request) -> Visit:
        """The visit of a request; a new one where there is none. Raises Refused."""
        if not self.access.has_token:
            self.access.check(request.headers)
        visit = self._read(request.cookies.get(COOKIE, "")) or self.begin("")
        if self.access.has_token and not (visit.level or self.access.knows(request.headers)):
            raise Refused(401, "sign in with the configured token")
        return visit

    def begin(self, level: str) -> Visit:
        """Begin a visit."""
        content = f"{level}.{int(time.time()) + MAX_AGE}.{os.urandom(9).hex()}"
        return self._visit(f"{content}.{self._sign('cookie', content)}", level)

    def sign_in(self, secret: str) -> Visit | None:
        """Begin a visit with the code, which works once, or with the token; None for neither."""
        with self._lock:
            if self._code and hmac.compare_digest(self._sign("code", secret), self._code):
                self._code = ""
                return self.begin("terminal")
        header = {"authorization": f"Bearer {secret}"}
        return self.begin("token") if self.access.has_token and self.access.knows(header) else None

    def require_own_form(self, request: Request, visit: Visit, form: Mapping[str, str]) -> None:
        """Raises Refused where the visit may change nothing, or another page sent the form."""
        if not visit.may_change:
            raise Refused(403, "sign in first: without it the pages change nothing")
        origin, host = request.headers.get("origin"), request.headers.get("host")
        is_foreign = origin is not None and origin.partition("://")[2] != host
        if is_foreign or not hmac.compare_digest(
            form.get("csrf", "").encode(), visit.csrf.encode()
        ):
            raise Refused(403, "this form is too old, or came from another page: load it again")

    def remember(self, visit: Visit, request: Request, response: Response) -> None:
        """Set the cookie where the browser does not have it yet."""
        if request.cookies.get(COOKIE) != visit.cookie:
            secure = request.url.scheme == "https"
            response.set_cookie(
                COOKIE, visit.cookie, MAX_AGE, httponly=True, samesite="strict", secure=secure
            )

    def _read(self, cookie: str) -> Visit | None:
        content, _, signature = cookie.rpartition(".")
        expected = self._sign("cookie", content)
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
            return None
        level, expires, _ = content.split(".")
        return self._visit(cookie, level) if int(expires) > time.time() else None

    def _visit(self, cookie: str, level: str) -> Visit:
        return Visit(level, cookie, self._sign("form", cookie))

    def _sign(self, purpose: str, content: str) -> str:
        """Sign for one purpose, so that no signature that a page shows serves for another one."""
        signed = f"{purpose}.{content}".encode("utf-8", "replace")
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()
