"""Counts and order hold through the proxy, in every process of it."""

from __future__ import annotations

from tests.server.proxy.conftest import MAIL, initialize, text_of
from toolmem import ToolMem


def test_two_proxies_on_one_store_let_no_more_mails_through_than_are_allowed(start, store):
    with ToolMem(store) as memory:
        when = [{"always": True, "more_than": {"calls": 3, "per": "3600s"}}]
        memory.rules.put("send_email", "at most 3 e-mails an hour", effect="deny", when=when)
    proxies = [start(server=MAIL) for _ in range(2)]
    for each in proxies:
        each.ask(initialize())
    told = [text_of(each.call("send_email", {"to": "bob@x.com"}, id=n)) for n in range(3) for each in proxies]
    assert [text.startswith("sent") for text in told] == [True] * 3 + [False] * 3
    assert "beyond 3 such calls in one hour" in told[-1]


def test_after_one_tool_was_used_another_is_stopped(start, store):
    with ToolMem(store) as memory:
        when = [{"target": ".", "earlier": {"tool": "^weather$"}}]
        memory.rules.put("send_email", "once you know the weather, write to nobody", effect="deny", when=when)
    proxy = start(server=MAIL)
    proxy.ask(initialize())
    assert text_of(proxy.call("send_email", {"to": "bob@x.com"}, id=1)).startswith("sent")
    assert "21.5" in text_of(proxy.call("weather", {"city": "Rome"}, id=2))
    assert "write to nobody" in text_of(proxy.call("send_email", {"to": "bob@x.com"}, id=3))
