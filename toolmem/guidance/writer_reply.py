"""A writer's reply: the guidance in its ```txt block, or edits of the guidance that its prompt showed.

Edits, one a line, in the order in which they came:

    3: new text      line 3 becomes this
    -5               line 5 goes
    +2: new text     a line behind line 2 (+0: in front of all lines)
    +: new text      a line at the end
    no change        alone: nothing changes

Line numbers are those of `numbered`: lines that hold nothing have none. They speak of the text as it was, so that an
edit never moves the target of another one. A reply that asks for what cannot be done raises ReplyUnreadable: the window
is to be read as a whole then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolmem.errors import ReplyUnreadable

_THOUGHTS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"(?P<at_line_start>^[ \t]{0,8})?```(?P<kind>[A-Za-z0-9_+.#-]*)", re.MULTILINE)
_OPENING = re.compile(r"[ \t]{0,8}```([A-Za-z0-9_+.#-]*)[ \t]*")
_KINDS = ("txt", "text", "")  # a fence that names no kind is taken for the one that was asked for


def read_guidance(text: str) -> str:
    """The guidance, without `<think>` and fences. Of several txt blocks the last one that is not empty.

    Blocks of code inside the txt block stay; a missing closing fence is forgiven. Raises ReplyUnreadable where the
    reply is empty or holds only fences of another kind. Time is linear in the length of the text.
    """
    answer = _without_thoughts(text)
    if not answer.strip():
        raise ReplyUnreadable("it is empty", reply=text)
    if "```" not in answer:
        return answer.strip()
    blocks = _blocks(answer)
    wanted = [content for kind, content in blocks if kind in _KINDS]
    if not wanted:
        kinds = sorted({kind for kind, _ in blocks})
        raise ReplyUnreadable(f"it holds a fence of another kind ({', '.join(kinds)[:40]}), expected txt", reply=text)
    filled = [content for content in wanted if content]
    if not filled:
        raise ReplyUnreadable("its txt block is empty", reply=text)
    return filled[-1]


def _without_thoughts(text: str) -> str:
    """Thoughts stand at the start; some models send only their closing tag. Thoughts without an end leave nothing."""
    ends = list(_END_OF_THOUGHTS.finditer(text))
    start = _THOUGHTS.match(text)
    if start is not None:
        return text[ends[0].end() :] if ends else ""
    fence = text.find("```")
    before = [end for end in ends if fence < 0 or end.start() < fence]
    return text[before[-1].end() :] if before else text


def _blocks(text: str) -> list[tuple[str, str]]:
    """(kind, content) of the outermost fenced blocks. Inside a block a fence with a kind opens another one."""
    blocks: list[tuple[str, str]] = []
    depth, kind, start = 0, "", 0
    for fence in _FENCE.finditer(text):
        if depth == 0:
            depth, kind, start = 1, fence["kind"].lower(), fence.end()
        elif fence["kind"] and fence["at_line_start"] is not None:
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                blocks.append((kind, text[start : fence.start()].strip()))
    if depth:
        blocks.append((kind, text[start:].strip()))
    return blocks


def read_edits_block(text: str) -> str:
    """The one txt block of an incremental reply, or the whole of a reply without any fence.

    Stricter than `read_guidance`: a part of the edits is worse than none. Fences stand on lines of their own, anywhere
    else they are text; a block without an end, or a second one, raises ReplyUnreadable.
    """
    lines = _without_thoughts(text).splitlines()
    fences = [(i, found[1].lower()) for i, line in enumerate(lines) if (found := _OPENING.fullmatch(line))]
    if not fences:
        return "\n".join(lines)
    (start, kind), rest = fences[0], fences[1:]
    if kind not in _KINDS:
        raise ReplyUnreadable(f"it holds a fence of another kind ({kind[:40]}), expected txt", reply=text)
    if not rest or rest[0][1]:
        raise ReplyUnreadable("its txt block has no end", reply=text)
    if len(rest) > 1:
        raise ReplyUnreadable("it holds more than one block", reply=text)
    return "\n".join(lines[start + 1 : rest[0][0]])


# ---------------------------------------------------------------- edits

NO_CHANGE = "no change"
MAX_CHARACTERS = 2_400  # of guidance that is edited: twice what the prompts ask for; beyond it is written anew
MAX_EDITS = 200
_EDIT = re.compile(r"-(?P<gone>\d{1,6})|(?P<added>\+)?(?P<line>(?<=\+)|\d{1,6}):(?P<text>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `line` counts from 1; of an added line it is the one that goes before it (None: the last)."""

    line: int | None
    text: str | None  # None: the line goes
    added: bool = False


def lines_of(text: str) -> list[str]:
    """The lines that have a number: those that hold something, without blanks at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def numbered(text: str) -> str:
    """The guidance as an incremental prompt shows it: `1: first line`, `2: ...`."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines_of(text), 1))


def parse_edits(block: str) -> list[Edit]:
    """The edits of a reply's block; none for "no change". Raises ReplyUnreadable: every line must be an edit."""
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    if not lines:
        raise ReplyUnreadable("it holds no edit and does not say 'no change'")
    if [line.rstrip(".").lower() for line in lines] == [NO_CHANGE]:
        return []
    if len(lines) > MAX_EDITS:
        raise ReplyUnreadable(f"it holds {len(lines)} edits, more than {MAX_EDITS}")
    return [_edit(line) for line in lines]


def _edit(line: str) -> Edit:
    found = _EDIT.fullmatch(line)
    if found is None:
        raise ReplyUnreadable(f"{line[:60]!r} is no edit")
    if found["gone"]:
        return Edit(int(found["gone"]), None)
    if not found["text"].strip():
        raise ReplyUnreadable(f"{line[:60]!r} holds no text")
    return Edit(int(found["line"]) if found["line"] else None, found["text"].strip(), bool(found["added"]))


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The guidance after `edits`, without empty lines where something changed.

    Raises ReplyUnreadable where a line is unknown, two edits want different things of one line, nothing would be left,
    or the text would grow beyond MAX_CHARACTERS.
    """
    if not edits:
        return text
    lines = lines_of(text)
    changed: dict[int, str | None] = {}
    behind: dict[int, list[str | None]] = {}
    for edit in edits:
        place = len(lines) if edit.line is None else edit.line
        if not (0 if edit.added else 1) <= place <= len(lines):
            raise ReplyUnreadable(f"there is no line {place}; the guidance has {len(lines)}")
        if edit.added:
            behind.setdefault(place, []).append(edit.text)
        elif changed.setdefault(place, edit.text) != edit.text:
            raise ReplyUnreadable(f"two edits of line {place} contradict each other")
    after = [*behind.get(0, [])]
    for number, line in enumerate(lines, 1):
        after += [changed.get(number, line), *behind.get(number, [])]
    result = "\n".join(line for line in after if line is not None)
    if not result:
        raise ReplyUnreadable("nothing of the guidance would be left")
    if len(result) > MAX_CHARACTERS:
        raise ReplyUnreadable(f"the guidance would grow to {len(result):,} characters, more than {MAX_CHARACTERS:,}")
    return result
