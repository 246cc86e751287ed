"""The pages of the console over a store that says given texts, and what is wrong with a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx

from toolmem import ToolMem
from toolmem.rules.changes import Actor

TOKEN = "token-of-the-test"
WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
NO_PAGE = "/w/default/rule?id=none"
LISTS = ("", "tools", "calls", "rules", "decisions", "search", "draft")
RUN = "window.ran = true"
# What calls, rules and sessions may say: each is a tool's name, too.
EVIL = (
    f"<script>{RUN}</script>\"'><img src=x onerror='{RUN}'>",
    f"\" autofocus onfocus='{RUN}' onmouseover='{RUN}' style='position:fixed;width:9999px'",
    f"</textarea></pre></title><iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<svg/onload='{RUN}'><style>*{{display:none}}</style><base href=//evil.example>",
    f"javascript:{RUN}",
    "//evil.example/x",
    "../../other/rule?id=1&do=delete#",
    "{{ 7 * 7 }}{% include 'base.html.j2' %}${7*7}",
    "\u202egnp.exe\u2066\u200b\u00ad\ufeff\U000e0041",
    "two\r\nlines: Set-Cookie: a=b\t\x1b[31m",
    "W" * 256,
)
LOOK = """() => {
  const strange = 'img, iframe, object, embed, base, video, audio, body script, body style, '
    + 'body link, body meta, head script:not([src^="/static/"]), [srcdoc], [style]';
  const isHandler = (each) => [...each.attributes].some((one) => /^on/i.test(one.name));
  const elements = [...document.querySelectorAll('*')].filter(
    (each) => each.matches(strange) || isHandler(each));
  const leading = [...document.links].filter((each) => each.origin !== location.origin);
  return {
    ran: Boolean(window.ran),
    strange: [...elements, ...leading].map((each) => each.outerHTML.slice(0, 200)),
    invisible: document.body.innerText.match(/[\\p{Cf}\\x1b]/u)?.[0].codePointAt(0) ?? null,
    wider: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  };
}"""


class Fault(NamedTuple):
    """Something on a page that must not be there."""

    address: str
    what: str
    found: Any


def fill(path: Path, *texts: str, size: int = 0) -> list[str]:
    """Make a store whose calls, rules, requests and sessions say these texts.

    `size`: least characters of an input and an output of the last text's tool. Returns the
    addresses of the lists, of what is about each text, of the sign-in, and one that answers 404.
    """
    lists = [f"/w/default/{page}" for page in LISTS]
    with ToolMem(path) as memory:
        memory.services.store().put(".store", ".store", "guarded", {})
        sizes = [0] * (len(texts) - 1) + [size]
        pages = [
            each for given in zip(texts, sizes, strict=True) for each in _about(memory, *given)
        ]
        memory.summarize()
    about = [f"/w/default/{page}?{urlencode(query)}" for page, query in pages]
    return [*lists, *about, "/sign-in", NO_PAGE]


def _about(memory: ToolMem, text: str, size: int) -> list[tuple[str, dict[str, Any]]]:
    """Calls, a rule that stops the next one, and a request; returns the pages about them."""
    long = text * (1 + size // len(text))
    call = {"tool_name": text, "context": text, "metadata": {"conversation_id": text}}
    for n, content in enumerate((long, text, text)):
        made = {"id": f"call {n}", "input": {text: content}, "output": content, "success": n > 0}
        memory.add([{**call, **made}])
    user = memory.acting_as(Actor("user", "typed", text, text, text))
    more = {"effect": "deny", "when": [{"text": "."}], "tags": [text[:100]]}
    rule = user.tool_rule_put(text, f"Never {text}", **more)
    decision = memory.check_tool_call(text, {text: text}, conversation_id=text)
    memory.acting_as(Actor("agent", "", text, text, text)).tool_rule_delete(text, rule.id)
    return [
        ("tool", {"name": text}),
        ("call", {"tool": text, "id": "call 0"}),
        ("rule", {"id": rule.id, "call": text, "replay": 1}),
        ("draft", {"tool_name": text, "rule": f"Only {text}"}),
        ("decision", {"id": decision.id}),
        ("search", {"q": text[:100]}),
    ]


def sign_in(page: Any, url: str) -> str:
    """In a browser, at a service whose token is TOKEN. Returns the root of the visit's pages."""
    page.goto(f"{url}/sign-in")
    page.get_by_label("The configured token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("You decide").wait_for()
    return str(page.url).partition("/w/")[0]


@contextmanager
def signed_in(url: str) -> Iterator[httpx.Client]:
    """A client that signed in at a service whose token is TOKEN."""
    with httpx.Client(base_url=url, trust_env=False, follow_redirects=True) as client:
        page = client.post("/sign-in", data={"secret": TOKEN}).raise_for_status()
        client.base_url = str(page.url).partition("/w/")[0]
        yield client


def look(page: Any, url: str, addresses: list[str], *, axe: bool = False) -> list[Fault]:
    """What is wrong with pages of a visit at both widths: status, elements, width, what ran.

    `axe`: what axe-core finds, too, in both schemes; the context must ignore policies.
    """
    found = []
    root = str(page.url).partition("/w/")[0]
    for address in addresses:
        status = page.goto((root if address.startswith("/w/") else url) + address).status
        if status != (404 if address == NO_PAGE else 200):
            found.append(Fault(address, "status", status))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(LOOK).items()
            found += [Fault(f"{address} {width}", what, value) for what, value in seen if value]
            for scheme in SCHEMES if axe else ():
                page.emulate_media(color_scheme=scheme)
                found += violations(page, f"{address} {width} {scheme}")
    return found


def violations(page: Any, place: str) -> list[Fault]:
    """What axe-core finds on a page; its context must ignore policies."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [Fault(place, each["id"], each["nodes"][0]["html"]) for each in found]
