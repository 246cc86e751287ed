"""Read a writer's reply: the guidance in its ```txt block, or the whole of a reply without any fence."""

from __future__ import annotations

import re

from toolmem.errors import ReplyUnreadable

_THOUGHTS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"(?P<at_line_start>^[ \t]{0,8})?```(?P<kind>[A-Za-z0-9_+.#-]*)", re.MULTILINE)
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


_OPENING = re.compile(r"[ \t]{0,8}```([A-Za-z0-9_+.#-]*)[ \t]*")


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
