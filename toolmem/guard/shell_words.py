"""The words of a shell text, one simple command after the other, as a shell would read them.

Quotes, escapes, here-documents, lists in braces, and variables that the text itself sets are opened. Not a shell: what
only a running one knows stays as it is written (`$NAME`) or is UNKNOWN. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field

UNKNOWN = "\0unknown"  # stands for a word that only the shell or the repository knows
_LONGEST_VALUE = 4_000  # characters of a variable that is put in
_MOST_ADDED = 100_000  # characters that variables may add to a text
_MOST_BRACES = 64  # words of one list in braces
_ASSIGNED = late_pattern(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))
_VARIABLE = late_pattern(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-=]([^{}$`\"'\\]*))?\})")
_HERE = late_pattern(r"<<(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|(\\?)([^\s'\"<>|;&()\\]+))")
_BRACES = late_pattern(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)")
_ESCAPE = late_pattern(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|.)", re.DOTALL)
_OPENED = late_pattern(r"\$\(|`")
_DESCRIPTOR = late_pattern(r"[\d-]+")
_LONG_JOINTS = frozenset(("||", "&&", "|&", ";;"))
_PLAIN = late_pattern(r"[^'\"\\$`# \t\r|;&\n()<>]+")


class Several(str):
    """The value of a variable that holds one word after the other: of a loop."""


@dataclass(slots=True)
class Segment:
    """One simple command."""

    words: list[str] = field(default_factory=list)
    ends: str = ";"  # "|": its output goes on; "(" and ")" stand alone where a subshell begins and ends
    joint: str = ";"  # as it is written: &&, ||, |, ;, & or the line's end
    nested: list[str] = field(default_factory=list)  # the texts of its substitutions, which run as well
    written: list[str] = field(default_factory=list)  # files that it is redirected into
    fed: str | None = None  # what a here-document gives it to read
    read: list[str] = field(default_factory=list)  # files that it is redirected from


def segments(text: str, variables: dict[str, str], printed: Callable[[str], str | None]) -> Iterator[Segment]:
    """The simple commands of a text. `variables`: those known, to which the text adds; `printed`: what a substitution
    prints, where that is known."""
    return _Reader(text, variables, printed).segments()


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str, variables: dict[str, str], printed: Callable[[str], str | None]) -> None:
        self.text = text
        self.at = 0
        self.segment = Segment()
        self.word: list[str] | None = None
        self.bare = True  # no part of the word is quoted
        self.into = ""  # the redirection whose file the next word is
        self.line_end = -1  # of the line that is read, where it has a here-document
        self.skip_to = 0  # behind the here-documents of the line
        self.room = _MOST_ADDED
        self.variables = variables
        self.printed = printed

    def segments(self) -> Iterator[Segment]:
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark in "|;&\n()":
                yield from self._join(mark)
            elif mark in "'\"\\$`# \t\r<>":
                _STEPS[mark](self)
            else:
                found = _PLAIN.match(self.text, self.at)
                assert found is not None
                self._put(found.group())
                self.at = found.end()
        yield from self._end(";")

    # -- words

    def _put(self, text: str, *, bare: bool = True) -> None:
        if self.word is None:
            self.word, self.bare = [], True
        self.word.append(text)
        self.bare = self.bare and bare

    def _put_value(self, value: str) -> None:
        """An expansion outside quotes: its blanks part words."""
        parts = value.split()
        for at, part in enumerate(parts):
            if at or value[:1].isspace():
                self._flush()
            self._put(part, bare=False)
        if parts and value[-1:].isspace():
            self._flush()

    def _flush(self) -> None:
        """The word is complete."""
        if self.word is None:
            return
        word, self.word = "".join(self.word), None
        into, self.into = self.into, ""
        if into == ">":
            self.segment.written.append(word)
        elif into == "<":
            self.segment.read.append(word)
        elif into == "<<<":
            self.segment.fed = word + "\n"
        elif self.bare and "{" in word and "," in word:
            self.segment.words += _in_braces(word)
        else:
            self.segment.words.append(word)

    def _end(self, joint: str) -> Iterator[Segment]:
        """The simple command is complete."""
        self._flush()
        done, self.segment = self.segment, Segment()
        self.into = ""
        done.ends, done.joint = "|" if joint in {"|", "|&"} else ";", joint
        self._assign(done.words)
        if done.words or done.written or done.nested:
            yield done

    def _assign(self, words: list[str]) -> None:
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            self._keep(words[1], Several(" ".join(words[3:])))
            return
        given = words[1:] if words and words[0] in _DECLARES else words
        found = [_ASSIGNED.fullmatch(word) for word in given if not word.startswith("-")]
        if not all(found):
            return
        for each in found:
            assert each is not None
            self._keep(each[1], (self.variables.get(each[1], "") if each[2] else "") + each[3])

    def _keep(self, name: str, value: str) -> None:
        if len(value) <= _LONGEST_VALUE:
            self.variables[name] = value
        else:
            self.variables.pop(name, None)

    def _value(self, found: re.Match[str]) -> str | None:
        """What a variable holds, as far as the text says."""
        value = self.variables.get(found[1] or found[2], found[3])
        if value is None or len(value) > self.room:
            return None
        self.room -= len(value)
        return value

    # -- joints

    def _join(self, mark: str) -> Iterator[Segment]:
        text, at = self.text, self.at
        if mark == "&" and text[at + 1 : at + 2] == ">":
            self.at += 1  # &> redirects
            return
        joint = text[at : at + 2] if text[at : at + 2] in _LONG_JOINTS else mark
        yield from self._end(joint)
        if mark in "()":
            yield Segment(ends=mark)
        if mark == "\n" and at == self.line_end:
            self.at, self.line_end = self.skip_to, -1
        else:
            self.at += len(joint)

    def _redirect(self) -> None:
        text, mark = self.text, self.text[self.at]
        if text.startswith(("<(", ">("), self.at):
            self._substitute()
            return
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None  # 2> names a descriptor
        self._flush()
        self.into = mark
        if text.startswith("<<<", self.at):
            self.at, self.into = self.at + 3, "<<<"
        elif found := _HERE.match(text, self.at):
            self._here_document(found)
        else:
            self.at += 2 if text[self.at : self.at + 2] in {">>", "<<", ">|", "<>", ">&", "<&"} else 1
            if text[self.at - 1] == "&" and (found := _DESCRIPTOR.match(text, self.at)):
                self.at, self.into = found.end(), ""  # 2>&1

    def _here_document(self, found: re.Match[str]) -> None:
        """Its lines stand behind the end of this one."""
        text = self.text
        self.at, self.into = found.end(), ""
        if self.line_end < self.at:
            end = text.find("\n", self.at)
            self.line_end = len(text) if end < 0 else end
            self.skip_to = max(self.skip_to, self.line_end + 1)  # no line is looked at twice
        delimiter = next(group for group in (found[2], found[3], found[5]) if group is not None)
        body, self.skip_to = _lines_until(text, self.skip_to, delimiter, strip=bool(found[1]))
        if found[5] is not None and not found[4]:
            self.segment.nested += _substitutions(body)
            body = _VARIABLE.sub(lambda each: value if (value := self._value(each)) is not None else each[0], body)
        self.segment.fed = body

    # -- quotes and expansions

    def _blank(self) -> None:
        self._flush()
        self.at += 1

    def _comment(self) -> None:
        if self.word is not None:
            self._put("#")
            self.at += 1
            return
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following != "\n":
            self._put(following or "\\", bare=False)
        self.at += 2

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        self._put(self.text[self.at + 1 : end], bare=False)
        self.at = end + 1

    def _double(self) -> None:
        self._put("", bare=False)
        text, self.at = self.text, self.at + 1
        while self.at < len(text) and text[self.at] != '"':
            mark = text[self.at]
            if mark == "\\" and self.at + 1 < len(text):
                following = text[self.at + 1]
                self._put("" if following == "\n" else following if following in '"\\$`' else mark + following)
                self.at += 2
            elif mark == "`" or text.startswith("$(", self.at):
                self._substitute(quoted=True)
            elif mark == "$":
                self._variable(quoted=True)
            else:
                end = self.at + 1
                while end < len(text) and text[end] not in '"\\$`':
                    end += 1
                self._put(text[self.at : end])
                self.at = end
        self.at += 1

    def _dollar(self) -> None:
        if self.text.startswith("$'", self.at):
            self._ansi()
        elif self.text.startswith('$"', self.at):
            self.at += 1
            self._double()
        elif self.text.startswith("$(", self.at):
            self._substitute()
        else:
            self._variable()

    def _variable(self, *, quoted: bool = False) -> None:
        found = _VARIABLE.match(self.text, self.at)
        value = self._value(found) if found else None
        if found is None or value is None:
            self._put(found.group() if found else "$")
            self.at = found.end() if found else self.at + 1
            return
        self.at = found.end()
        if quoted and not isinstance(value, Several):
            self._put(value)
        else:
            self._put_value(value)

    def _substitute(self, *, quoted: bool = False) -> None:
        """$(...), <(...), >(...) or `...`."""
        is_file = self.text[self.at] in "<>"
        self.at, inner = _substituted(self.text, self.at)
        self.segment.nested.append(inner)
        output = None if is_file else self.printed(inner)
        if output is None:
            self._put(UNKNOWN)
        elif quoted:
            self._put(output.rstrip("\n"))
        else:
            self._put_value(output.rstrip("\n"))

    def _ansi(self) -> None:
        """$'...' with its escapes."""
        end = self.at + 2
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        self._put(unescaped(self.text[self.at + 2 : end]), bare=False)
        self.at = end + 1


_STEPS: dict[str, Callable[[_Reader], None]] = {
    "'": _Reader._single,
    '"': _Reader._double,
    "\\": _Reader._escape,
    "$": _Reader._dollar,
    "`": _Reader._substitute,
    "#": _Reader._comment,
    " ": _Reader._blank,
    "\t": _Reader._blank,
    "\r": _Reader._blank,
    "<": _Reader._redirect,
    ">": _Reader._redirect,
}


def unescaped(text: str) -> str:
    """A text with the escapes of $'...', `echo -e` and `printf` as what they stand for."""

    def character(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if number <= 0x10FFFF else "\ufffd"
        return chr(int(code, 8)) if code[0].isdigit() else {"n": "\n", "t": "\t", "r": "\r"}.get(code, code)

    return _ESCAPE.sub(character, text)


def _in_braces(word: str) -> list[str]:
    """The words of a list in braces: {rm,-f} are two."""
    found = _BRACES.fullmatch(word)
    parts = found[2].split(",") if found else []
    if found is None or len(parts) > _MOST_BRACES:
        return [word]
    return [made for part in parts if (made := found[1] + part + found[3])]


def _lines_until(text: str, start: int, delimiter: str, *, strip: bool) -> tuple[str, int]:
    """(the lines of a here-document, where what follows begins)."""
    blanks = r"\t*" if strip else ""
    end = re.compile(rf"^{blanks}{re.escape(delimiter)}\r?$", re.MULTILINE).search(text, start)
    return (text[start:], len(text)) if end is None else (text[start : end.start()], end.end() + 1)


def _substitutions(text: str) -> list[str]:
    """What stands in $(...) and `...` in a here-document."""
    found: list[str] = []
    at = 0
    while opened := _OPENED.search(text, at):
        at, inner = _substituted(text, opened.start())
        found.append(inner)
    return found


def _substituted(text: str, at: int) -> tuple[int, str]:
    """A substitution that begins at `at`: where it ends, and the commands in it."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        end = len(text) if end < 0 else end
        return end + 1, text[at + 1 : end]
    depth, start = 1, at + 2
    at = start
    while at < len(text) and depth:
        if text[at] == "\\":
            at += 1
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
        at += 1
    return at, text[start : at - 1 if depth == 0 else at]
