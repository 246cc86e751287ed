"""Whether a request over HTTP may write: by its method; without one it reads, unless it sends something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolmem.guard.word_lists import split
from toolmem.late import late_pattern

_METHODS = split("get head options trace post put patch delete")
_READING = split("get head options trace")
_SAID = split("method http_method httpmethod request_method verb")
_ADDRESSES = split("url uri href link endpoint address")
_ROUTES = split("path route")  # an address where a method stands beside it
_OF_HTTP = split("http https httpx curl wget axios")
_REQUESTS = split("request requests fetch")
_AROUND = split("web url api rest make send do run call client tool")  # words beside them that name no other act
_SENT = split("body data json payload form file files upload content args arguments options flags variables")
_WORD = late_pattern(r"[a-z]+|[A-Z][a-z]*")


def request_writes(name_words: Collection[str], arguments: Any) -> bool | None:
    """None where a call is no request. `name_words`: of the tool's name, in lower case."""
    if not isinstance(arguments, Mapping):
        return None
    sent = {str(name)[:100]: value for name, value in arguments.items() if value not in (None, "", {}, [])}
    given = {name.lower(): value for name, value in sent.items()}
    method = next((str(given[name]).lower() for name in _SAID if name in given), "")
    words = frozenset(name_words)
    if not any(isinstance(given.get(name), str) for name in (*_ADDRESSES, *(_ROUTES if method in _METHODS else ()))):
        return None
    is_request = bool(words & _OF_HTTP) or (bool(words & _REQUESTS) and words <= _REQUESTS | _AROUND | _METHODS)
    if not is_request and method not in _METHODS:
        return None
    if methods := [method] if method else sorted(words & _METHODS):
        return not _READING.issuperset(methods)
    return not _SENT.isdisjoint(part.lower() for name in sent for part in _WORD.findall(name))
