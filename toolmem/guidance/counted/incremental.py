"""Edits of guidance: its numbered lines, the changes that a reply asks for, and the text after them.

The grammar, one edit per line, in the order in which they came:

    3: new text      line 3 becomes this
    -5               line 5 goes
    +2: new text     a line behind line 2 (+0: in front of all lines)
    +: new text      a line at the end
    no change        alone: nothing changes

Line numbers are those of `numbered`: lines that hold nothing have none. They speak of the text as it was, so that an
edit never moves the target of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolmem.errors import ReplyUnreadable

NO_CHANGE = "no change"
MAX_CHARACTERS = 2_400  # of guidance that is edited: twice what the prompts ask for; beyond it is written anew
MAX_EDITS = 200

_REPLACE = re.compile(r"(\d{1,6}):(.*)", re.DOTALL)
_DELETE = re.compile(r"-(\d{1,6})")
_ADD = re.compile(r"\+(\d{0,6}):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `line` counts from 1; of an added line it is the one that goes before it (None: the last)."""

    line: int | None
    text: str | None  # None: the line goes
    added: bool = False

    def __str__(self) -> str:
        if self.text is None:
            return f"-{self.line}"
        place = "" if self.line is None else str(self.line)
        return f"+{place}: {self.text}" if self.added else f"{place}: {self.text}"


class UnusableEdits(ReplyUnreadable):
    """What a reply asks for cannot be done to the guidance that was shown: the window is to be read as a whole."""

    def __init__(self, message: str, *, reply: str = "") -> None:
        super().__init__(message, reply=reply)


def lines_of(text: str) -> list[str]:
    """The lines that have a number: those that hold something, without blanks at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def numbered(text: str) -> str:
    """The guidance as an incremental prompt shows it: `1: first line`, `2: ...`."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines_of(text), 1))


def render_edits(edits: Iterable[Edit]) -> str:
    """Edits in the grammar; `parse_edits` reads them back."""
    return "\n".join(map(str, edits)) or NO_CHANGE


def parse_edits(block: str) -> list[Edit]:
    """The edits of a reply's block; none for "no change". Raises UnusableEdits: every line must be an edit."""
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    if not lines:
        raise UnusableEdits("it holds no edit and does not say 'no change'", reply=block)
    if [line.rstrip(".").lower() for line in lines] == [NO_CHANGE]:
        return []
    if len(lines) > MAX_EDITS:
        raise UnusableEdits(f"it holds {len(lines)} edits, more than {MAX_EDITS}", reply=block)
    return [_edit(line, block) for line in lines]


def _edit(line: str, block: str) -> Edit:
    if found := _DELETE.fullmatch(line):
        return Edit(int(found[1]), None)
    added = _ADD.fullmatch(line)
    found = added or _REPLACE.fullmatch(line)
    if found is None:
        raise UnusableEdits(f"{line[:60]!r} is no edit", reply=block)
    if not found[2].strip():
        raise UnusableEdits(f"{line[:60]!r} holds no text", reply=block)
    return Edit(int(found[1]) if found[1] else None, found[2].strip(), added is not None)


def apply_edits(text: str, edits: Sequence[Edit], max_characters: int = MAX_CHARACTERS) -> str:
    """The guidance after `edits`, without empty lines where something changed.

    Raises UnusableEdits where a line is unknown, two edits want different things of one line, nothing would be left,
    or the text would grow beyond `max_characters`.
    """
    if not edits:
        return text
    lines = lines_of(text)
    changed = _by_line(edits, len(lines))
    behind: dict[int, list[str]] = {}
    for edit in edits:
        if edit.added and edit.text is not None:
            behind.setdefault(len(lines) if edit.line is None else edit.line, []).append(edit.text)
    after = list(behind.get(0, []))
    for number, line in enumerate(lines, 1):
        now = changed.get(number, Edit(number, line)).text
        after += [*([] if now is None else [now]), *behind.get(number, [])]
    if not after:
        raise UnusableEdits("nothing of the guidance would be left")
    result = "\n".join(after)
    if len(result) > max_characters:
        raise UnusableEdits(f"the guidance would grow to {len(result):,} characters, more than {max_characters:,}")
    return result


def _by_line(edits: Sequence[Edit], count: int) -> dict[int, Edit]:
    """The change of each line. Raises UnusableEdits."""
    changed: dict[int, Edit] = {}
    for edit in edits:
        if edit.line is not None and not (0 if edit.added else 1) <= edit.line <= count:
            raise UnusableEdits(f"there is no line {edit.line}; the guidance has {count}")
        if edit.added or edit.line is None:
            continue
        if changed.setdefault(edit.line, edit) != edit:
            raise UnusableEdits(f"two edits of line {edit.line} contradict each other")
    return changed
