"""The sentences of a page, without texts of calls, rules and cards."""

import re
from html.parser import HTMLParser

MAX_WORDS = 15
INLINE = {"a", "b", "em", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup", "time"}
SKIPPED = {"blockquote", "pre", "script", "style", "svg", "textarea"}
SKIPPED_CLASSES = {"card", "text"}  # their elements hold what was recorded
EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
_END = re.compile(r"(?<=[.!?])[\s)]+|[。！？·]|\n")
_WORD = re.compile(r"\w[\w.,'’-]*")


class _Text(HTMLParser):
    """The page's own text: a code is one word, and each block begins a line."""

    def __init__(self):
        super().__init__()
        self.text, self.open = "", []

    def handle_starttag(self, tag, attrs):
        if tag not in EMPTY:
            classes = (dict(attrs).get("class") or "").split()
            self.open.append((tag, tag in SKIPPED or bool(SKIPPED_CLASSES & {*classes})))
        self._begin(tag)
        if tag == "code" and not self._is_skipped():
            self.text += "code"

    def handle_endtag(self, tag):
        while tag in dict(self.open) and self.open.pop()[0] != tag:
            pass
        self._begin(tag)

    def handle_data(self, data):
        if not self._is_skipped() and "code" not in dict(self.open):
            self.text += re.sub(r"\s+", " ", data)

    def _begin(self, tag):
        self.text += "" if tag in INLINE | {"code"} else "\n"

    def _is_skipped(self):
        return any(skipped for _, skipped in self.open)


def sentences(page):
    """The sentences of an HTML page, one string each."""
    parser = _Text()
    parser.feed(page)
    return [each.strip() for each in _END.split(parser.text) if each.strip()]


def long_sentences(page):
    """Those of more than 15 words."""
    return [each for each in sentences(page) if len(_WORD.findall(each)) > MAX_WORDS]
