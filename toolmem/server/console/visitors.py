"""Sign people in to the console, and check that forms come from its own pages.

Everybody whom `access` authorizes may read, without a cookie. To decide, a person signs in with a
code that the terminal of `serve` prints, and confirms there the two words that their browser shows.
Visits are kept in this process, so that they can be ended.

A browser sends the cookies of a host to all of its ports, so that an agent's server on this machine
may read them. Deciding therefore also needs the key in the address of each page of a visit; the
cookie alone lets a visit read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import time
from typing import Any, Protocol

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from toolmem.rules.changes import Actor
from toolmem.server.access import Access, Refused

CHANGE_SECONDS = 15 * 60  # after signing in, and after each change
MAX_VISITS = 64
MAX_LOCATIONS = 4  # of a visit
_ADJECTIVES = """
amber ancient autumn blue brave brisk bronze calm cherry clever copper coral crimson curious dusty
eager early emerald fancy fluffy frosty gentle giant golden grand green happy hazel hidden honest
indigo ivory jolly lemon little lucky marble mellow mighty misty nimble orange patient pearl pink
polite proud purple quick quiet rapid royal rusty scarlet shiny silent silver sleepy snowy sunny
swift tidy velvet violet
"""
_ANIMALS = """
badger bear beaver bison camel cat cheetah cobra cow crab crane crow deer dolphin donkey dragon
duck eagle falcon ferret finch fish fox frog gecko goat goose hamster hare hawk hedgehog heron
horse jaguar koala lamb lemur lion lizard llama lynx mole monkey moose mouse octopus otter owl
panda parrot penguin pony puma rabbit raven salmon seal sheep spider swan tiger turtle wolf zebra
"""
_WORDS = (_ADJECTIVES, _ANIMALS)
USED_TWICE = "A link was used a second time: all visits are ended."


class Terminal(Protocol):
    """The terminal in which a person started `serve`."""

    def show_link(self, code: str, message: str = "") -> None:
        """Print a message and the sign-in link with this code. Ends an open question of `ask`."""

    def ask(self, words: str, answered: Callable[[bool], None]) -> None:
        """Begin to ask if the browser with these words may sign in; `answered` gets the answer."""


class Visit(Struct, eq=False):
    """A browser's visit. `level`: how it signed in, "token" or "terminal"; "" before that."""

    level: str = ""
    id: str = ""  # in its cookie; "" where it has none
    key: str = ""  # in the addresses of its pages
    form: str = ""  # random, of the form that signed in: sent again, it returns this visit
    wait: str = ""  # in the address of the page that waits for the terminal
    words: str = ""  # shown while the terminal is asked
    then: str = "/"  # where signing in leads
    changes_until: float = 0.0  # seconds since 1970
    lock: Any = field(default_factory=threading.Lock)  # held while a form is carried out
    locations: dict[bytes, str] = {}  # to which the newest forms led, by their digest
    _key: bytes = field(default_factory=lambda: os.urandom(32))

    @property
    def may_change(self) -> bool:
        return time() < self.changes_until

    @property
    def csrf(self) -> str:
        """A new token for one form of this visit, so that forged forms can be told apart."""
        nonce = os.urandom(16).hex()
        return nonce + self._sign(nonce)

    def signed(self, csrf: str) -> bool:
        """Whether `csrf` is a token that this visit made for a form."""
        expected = self._sign(csrf[:32])
        return hmac.compare_digest(expected.encode(), csrf[32:].encode())

    def allow_changes(self) -> None:
        """Let the visit change rules for the next 15 minutes."""
        self.changes_until = time() + CHANGE_SECONDS

    def keep_location(self, body: bytes, location: str) -> None:
        """Remember the page that a form led to, so that the form is not carried out twice."""
        self.locations[hashlib.sha256(body).digest()] = location
        while len(self.locations) > MAX_LOCATIONS:
            del self.locations[next(iter(self.locations))]

    def location_of(self, body: bytes) -> str:
        """Return the page to which the form with this body led before; "" for a new form."""
        return self.locations.get(hashlib.sha256(body).digest(), "")

    def was_sent_to(self, location: str) -> bool:
        """Whether the newest form of the visit led to this page, which then shows the result."""
        return location == next(reversed(self.locations.values()), "")

    def actor(self, what: str) -> Actor:
        """Return the actor for a change of rules. `what`: the kind of change, such as "approve"."""
        return Actor("user", "terminal" if self.level == "terminal" else "", f"console: {what}")

    def _sign(self, nonce: str) -> str:
        return hmac.new(self._key, nonce.encode(), hashlib.sha256).hexdigest()


class Visitors:
    """Begins, finds and ends visits. `terminal`: prints the sign-in links; None: no links."""

    def __init__(
        self, access: Access, terminal: Terminal | None = None, *, read_only: bool = False
    ) -> None:
        self.access = access
        self.read_only = read_only
        self._terminal = None if read_only else terminal
        self._lock = threading.RLock()  # held where visits begin and end
        self._visits: dict[str, Visit] = {}  # by id, the oldest first
        self._code = b""  # digest of the printed one; b"" while the terminal asks
        self._used: dict[bytes, Visit] = {}  # visits by the digest of their code
        self._asked: Visit | None = None  # about which the terminal asks
        self._print_code()

    @property
    def takes_code(self) -> bool:
        return self._terminal is not None

    def by_cookie(self, request: Request) -> Visit | None:
        """Find the visit by the request's cookie alone; None if there is none."""
        return self._visits.get(request.cookies.get(cookie_name(request), ""))

    def visit_of(self, request: Request) -> Visit:
        """Find the visit by cookie and key. If either is wrong, returns one that only reads."""
        visit = self.by_cookie(request) or Visit()
        key = request.path_params.get("key", "")
        if visit.key and hmac.compare_digest(key.encode(), visit.key.encode()):
            return visit
        return Visit(level=visit.level)

    def require_reader(self, request: Request, visit: Visit) -> None:
        """Raises Refused if the request may not read; with 401 if it must sign in first."""
        if not self.access.needs_token:
            self.access.check(request.headers)
        elif not (visit.level or self.access.has_token(request.headers)):
            raise Refused(401, "Sign in with the configured token.")

    def sign_in(self, secret: str, form: str, then: str) -> Visit | None:
        """Begin a visit. `secret`: the token, or a code that the terminal then asks about.

        `form`: the form's random id. `then`: the next page. Returns None if the secret is wrong. A
        code that another form has used may be stolen: it ends all visits, and raises Refused.
        """
        digest = hashlib.sha256(secret.encode("utf-8", "replace")).digest()
        header = {"authorization": f"Bearer {secret}"}
        token = partial(secrets.token_urlsafe, 24)
        new = Visit(id=token(), key=token(), wait=token(), form=form, then=then)
        with self._lock:
            if used := self._used.get(digest):
                if form and hmac.compare_digest(form.encode(), used.form.encode()):
                    return used  # the same form, sent twice
                self._visits.clear()
                self._print_code(USED_TWICE)
                raise Refused(403, "The link was used before: all visits are ended.")
            if self._terminal and self._code and hmac.compare_digest(digest, self._code):
                new.words = " ".join(secrets.choice(each.split()) for each in _WORDS)
                self._code = b""
                self._asked = new
                self._keep(self._used, digest, new)
                self._terminal.ask(new.words, lambda is_let_in: self._answered(new, is_let_in))
            elif self.access.needs_token and self.access.has_token(header):
                new.level = "token"
                if not self.read_only:
                    new.allow_changes()
            else:
                return None
            self._keep(self._visits, new.id, new)
        return new

    def end(self, visit: Visit | None) -> None:
        """End a visit, if there is one: its browser is signed out."""
        if visit is not None:
            self._visits.pop(visit.id, None)

    def require_own_form(self, request: Request, visit: Visit, form: Mapping[str, str]) -> None:
        """Raises Refused unless a page of this visit sent the form."""
        self.require_own_page(request)
        if not visit.signed(form.get("csrf", "")):
            raise Refused(403, "This form is too old, or came from another page: load it again.")

    def require_own_page(self, request: Request) -> None:
        """Raises Refused if a page of another host or port sent the request."""
        origin = request.headers.get("origin")
        host = request.headers.get("host")
        site = request.headers.get("sec-fetch-site", "none")  # "none": typed, or no browser
        is_foreign = origin is not None and origin.partition("://")[2] != host
        if is_foreign or site not in ("none", "same-origin"):
            raise Refused(403, "This form came from another page.")

    def require_may_change(self, visit: Visit) -> None:
        """Raises Refused if a visit may not change rules."""
        if self.read_only:
            raise Refused(403, "This server is read-only. Nothing was changed.")
        if self._visits.get(visit.id) is not visit:  # it may end while a form is being sent
            raise Refused(403, "Sign in first. Nothing was changed.")
        if not visit.may_change:
            raise Refused(403, "You signed in too long ago. Nothing was changed.")

    def _answered(self, visit: Visit, is_let_in: bool) -> None:
        with self._lock:
            if self._asked is not visit:  # ended meanwhile
                return
            visit.words = ""
            if is_let_in:
                visit.level = "terminal"
                visit.allow_changes()
            self._print_code()

    def _print_code(self, message: str = "") -> None:
        self._asked = None
        if self._terminal is not None:
            code = secrets.token_urlsafe(12)
            self._code = hashlib.sha256(code.encode()).digest()
            self._terminal.show_link(code, message)

    @staticmethod
    def _keep(kept: dict[Any, Visit], key: bytes | str, visit: Visit) -> None:
        """Keep a visit. Over MAX_VISITS the oldest is dropped, visits by the terminal last."""
        while len(kept) >= MAX_VISITS:
            del kept[min(kept, key=lambda each: kept[each].level == "terminal")]
        kept[key] = visit


def cookie_name(request: Request) -> str:
    """Return a name with the port, as a browser sends a host's cookies to all its ports."""
    return f"toolmem_visit_{(request.scope.get('server') or ('', ''))[1]}"


def set_cookie(visit: Visit, request: Request, response: Response) -> None:
    """Set the cookie of a visit. The browser keeps it until it is closed."""
    response.set_cookie(
        cookie_name(request),
        visit.id,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
