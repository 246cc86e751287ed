"""What a process works on, and for whom; and what it asked its clients meanwhile.

Ids and progress tokens of different clients may be alike, so that the process is given names that nobody can guess and
no two requests share, and the client its own back.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from toolmem.server.proxy.frames import Frame, Span

_RELATED = "relatedRequestId"
_MOST_ASKED = 1000  # questions of a process that wait for an answer


class OpenRequest:
    """One request of a client, for as long as its answers come."""

    def __init__(self, name: str, frame: Frame) -> None:
        given, token = frame.span("id"), frame.span("params", "_meta", "progressToken")
        assert given is not None
        self.name = name
        self.id = frame.value["id"]
        self.id_text = frame.text[slice(*given)]  # as the client wrote it
        self.token_text = frame.text[slice(*token)] if token is not None else ""
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_listened_to = True
        told = json.dumps(name)
        self.renamed = frame.edited([(*span, told) for span in (given, token) if span is not None])


class OpenRequests:
    """Those of one process, by the name that it knows each by."""

    def __init__(self) -> None:
        self._prefix = f"toolmem-{secrets.token_hex(8)}-"
        self._numbers = itertools.count(1)
        self._open: OrderedDict[str, OpenRequest] = OrderedDict()
        self._clients: list[Hashable] = []  # whom the process has worked for: one, or two for "several"

    def add(self, frame: Frame, client: Hashable) -> OpenRequest:
        name = f"{self._prefix}{next(self._numbers)}"
        if client not in self._clients:
            self._clients = [*self._clients[:1], client]
        self._open[name] = added = OpenRequest(name, frame)
        return added

    def get(self, name: Any) -> OpenRequest | None:
        return self._open.get(name) if isinstance(name, str) else None

    def pop(self, name: Any) -> OpenRequest | None:
        return self._open.pop(name, None) if isinstance(name, str) else None

    def __iter__(self) -> Iterator[OpenRequest]:
        return iter(list(self._open.values()))

    def __contains__(self, request: OpenRequest) -> bool:
        return request.name in self._open

    @property
    def newest(self) -> OpenRequest | None:
        """Of those whose client still listens."""
        return next((each for each in reversed(self._open.values()) if each.is_listened_to), None)

    @property
    def are_of_one_client(self) -> bool:
        """Was it one client that the process has worked for since it began? Then what it says is meant for that one."""
        return len(self._clients) == 1

    def named_in(self, message: Mapping[str, Any]) -> tuple[str, list[tuple[str, ...]]]:
        """The request that a message of the process says that it belongs to, and where; "" where it does not say."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for path, value in _references(message):
            if isinstance(value, str) and value.startswith(self._prefix):
                found.setdefault(value, []).append(path)
        return next(iter(found.items()), ("", []))


def _references(message: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What in a message may name a request, and where it stands."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    for name, value in (meta if isinstance(meta, dict) else {}).items():
        yield ("params", "_meta", name), value
    yield ("params", "progressToken"), params.get("progressToken")
    yield ("params", _RELATED), params.get(_RELATED)
    yield (_RELATED,), message.get(_RELATED)


class AskedClients:
    """Requests of a process to clients, by ids that only the client which is asked is told."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, tuple[str, str, OpenRequest]] = OrderedDict()

    def asked(self, frame: Frame, request: OpenRequest) -> tuple[bytes, str]:
        """The question as the client of `request` is to see it; the id of one that is given up for it, as JSON."""
        given, token = frame.span("id"), frame.span("params", "_meta", "progressToken")
        assert given is not None
        id = f"toolmem-server-{secrets.token_hex(12)}"
        token_text = frame.text[slice(*token)] if token is not None else ""
        self._asked[id] = frame.text[slice(*given)], token_text, request
        dropped = self._asked.popitem(last=False)[1][0] if len(self._asked) > _MOST_ASKED else ""
        return frame.edited([(*span, json.dumps(id)) for span in (given, token) if span is not None]), dropped

    def answered(self, frame: Frame) -> bytes | None:
        """A client's answer as the process is to see it, once; None where it answers nothing that is open."""
        id, span = frame.value.get("id"), frame.span("id")
        known = self._asked.pop(id, None) if isinstance(id, str) else None
        return None if known is None or span is None else frame.edited([(*span, known[0])])

    def reported(self, frame: Frame) -> bytes | None:
        """A client's progress with what it was asked."""
        token, span = _param(frame, "progressToken"), frame.span("params", "progressToken")
        known = self._asked.get(token) if isinstance(token, str) else None
        return None if known is None or span is None or not known[1] else frame.edited([(*span, known[1])])

    def withdrawn(self, frame: Frame) -> tuple[bytes, OpenRequest] | None:
        """The process cancels what it asked: the message for the client that was asked."""
        told, span = _param(frame, "requestId"), frame.span("params", "requestId")
        for id, (id_text, _, request) in self._asked.items():
            if span is not None and json.loads(id_text, strict=False) == told:
                return frame.edited([(*span, json.dumps(id))]), request
        return None

    def given_up(self, request: OpenRequest) -> list[str]:
        """The request is over: the ids, as JSON, of what was asked for it and not answered."""
        over = [id for id, (_, _, of) in self._asked.items() if of is request]
        return [self._asked.pop(id)[0] for id in over]


def _param(frame: Frame, name: str) -> Any:
    params = frame.value.get("params")
    return params.get(name) if isinstance(params, dict) else None


def replaced(frame: Frame, places: list[tuple[str, ...]], request: OpenRequest) -> bytes:
    """A message of the process with what the client itself calls its request."""
    edits = []
    for path in places:
        span: Span | None = frame.span(*path)
        own = request.token_text if path[-1] == "progressToken" else request.id_text
        if span is not None and own:
            edits.append((*span, own))
    return frame.edited(edits)
