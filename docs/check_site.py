"""Looks at the built documentation: loads nothing from outside, links lead somewhere, search knows its words.

python docs/check_site.py docs/_build/html      exit 1 where something is wrong
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
LOADS = {  # what a browser fetches by itself
    *(("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("embed", "src"), ("object", "data")),
    *(("link", "href"), ("use", "href"), ("image", "href"), ("video", "src"), ("audio", "src"), ("img", "srcset")),
}
LOADED_BY_SCRIPT = re.compile(r"https?://[^\s\"'`<>]+?\.(?:m?js|css|woff2?|ttf)\b|mathjax@|require\.min\.js", re.I)
FETCHED_BY_STYLE = re.compile(
    r"@import\s+(?:url\(\s*)?['\"]?([^)'\";\s]+)|url\(\s*['\"]?(?!data:|#)([^)'\"]+)", re.IGNORECASE
)
# What somebody who has never seen the project looks for, and the page that says it; within three clicks.
SOUGHT = ("how-to/configure-ops.html", "how-to/costs.html", "how-to/failures.html")
CLICKS = 3
# Words that a reader may search for, and the page that has to be among what is found.
SEARCHED = {
    "recent_call_count": "how-to/configure-ops",
    "budget": "how-to/failures",
    "instruction": "benchmarks",
    "chroma": "migration/reme",
    "rpc": "reference/rpc",
    "wilson": "notebooks/01_evaluate_tool_calls",
}


class Page(HTMLParser):
    """The ids, links and fetched addresses of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = tag != "link" or given.get("rel", "") not in ("index", "search", "next", "prev", "canonical", "author")
        self.loads += [value for name, value in given.items() if (tag, name) in LOADS and loaded]
        self.loads += _fetched(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._style = self._style and tag != "style"

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += _fetched(data)


def _fetched(css: str) -> list[str]:
    return [found[1] or found[2] for found in FETCHED_BY_STYLE.finditer(css)]


def problems(site: Path) -> list[str]:
    pages = {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = [*_outside(site, pages), *_broken(site, pages), *_places(site, pages), *_search(site)]
    return [*found, *_navigation(pages)]


def _outside(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    for name, page in pages.items():
        for address in page.loads:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                yield f"{name} loads {address[:100]}"
    for style in site.rglob("*.css"):
        for address in _fetched(style.read_text(encoding="utf-8")):
            if urlsplit(address).scheme or address.startswith("//"):
                yield f"{style.name} loads {address[:100]}"
    for script in site.rglob("*.js"):
        for found in LOADED_BY_SCRIPT.finditer(script.read_text(encoding="utf-8")):
            if script.name != "searchindex.js":
                yield f"{script.name} loads {found[0][:100]}"


def _broken(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = _target(name, link) if parts.path else name
            if target not in pages:
                if not (site / target).is_file():
                    yield f"{name} links to {link}, which is not there"
            elif parts.fragment and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name} links to {link}; that page has no such place"


def _target(page: str, link: str) -> str:
    parts: list[str] = page.split("/")[:-1]
    for part in unquote(urlsplit(link).path).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _places(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    for name in pages:
        if str(ROOT) in (site / name).read_text(encoding="utf-8"):
            yield f"{name} shows a path of this machine"


def _search(site: Path) -> Iterator[str]:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    for word, page in SEARCHED.items():
        found: set[int] = set()
        for terms in (index["terms"], index["titleterms"]):
            for stem, numbers in terms.items():
                if word.startswith(stem) and len(stem) >= min(len(word), 3):  # the index holds stems
                    found.update([numbers] if isinstance(numbers, int) else numbers)
        if page not in {index["docnames"][number] for number in found}:
            yield f"a search for {word!r} does not find {page}"


def _navigation(pages: dict[str, Page]) -> Iterator[str]:
    clicks = {"index.html": 0}
    waiting = ["index.html"]
    while waiting:
        name = waiting.pop(0)
        for link in pages[name].links:
            target = _target(name, link) if not urlsplit(link).scheme and urlsplit(link).path else name
            if target in pages and target not in clicks:
                clicks[target] = clicks[name] + 1
                waiting.append(target)
    for page in SOUGHT:
        if clicks.get(page, CLICKS + 1) > CLICKS:
            yield f"{page} is more than {CLICKS} clicks away from the front page"
    for page in pages.keys() - clicks.keys() - {"search.html", "genindex.html"}:
        yield f"nothing leads to {page}"


def main() -> int:
    found = problems(Path(sys.argv[1]))
    for problem in found:
        print(problem, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
