"""Pages that load nothing from outside: what a browser would fetch for one is found before it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from toolmem.errors import ToolMemError

# nothing but what stands in the file itself may be shown, and nothing may run
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_page(page: str, target: Path) -> Path:
    """Write the page at once. Raises ToolMemError where it would load something from outside."""
    if outside := outside_resources(page):
        raise ToolMemError(f"the page would load from outside: {', '.join(outside[:5])}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".part")
    draft.write_text(page, encoding="utf-8", errors="replace")
    os.replace(draft, target)
    return target


def outside_resources(page: str) -> list[str]:
    """What a browser would fetch to show this page: `tag attribute=address`, empty for a self-contained one.

    Links that a reader may follow (`a href`) load nothing and are not counted; neither are fragments and data URIs.
    """
    finder = _Resources()
    finder.feed(page)
    finder.close()
    return finder.found


class _Resources(HTMLParser):
    ATTRIBUTES = frozenset(
        {"src", "srcset", "href", "xlink:href", "poster", "data", "background", "action", "formaction"}
    )

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        if tag in ("script", "iframe", "object", "embed"):
            self.found.append(tag)
        for name, value in attrs:
            address = (value or "").strip()
            if name in self.ATTRIBUTES and tag not in ("a", "area") and not address.startswith(("data:", "#")):
                self.found.append(f"{tag} {name}={address}")
            if name == "style":
                self.found += [f"{tag} style={found}" for found in _addresses(address)]

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += [f"style {found}" for found in _addresses(data)]


def _addresses(css: str) -> Iterator[str]:
    for match in re.finditer(r"@import[^;]*|url\(\s*['\"]?(?!data:|#)[^)]*\)?", css, re.IGNORECASE):
        yield match.group(0)[:80]
