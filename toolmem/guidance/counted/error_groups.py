"""Groups of failures whose messages differ in names, numbers and quotations only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.values import by_frequency
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import MASK, MASKED, STATUS, hide_status, mask, restore

MAX_LINE = 160  # characters of a message that are kept for showing
MAX_COMPARED = 50  # different messages of a group that are compared word for word
MAX_WORDS = 100  # of a message that is compared with others word by word
MAX_NAME = 40  # characters of a name in a message; longer ones are masked even where all messages share them


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failures that say the same but for the names in it."""

    label: str  # the message, with what varies masked; "" where there was no output
    error_class: str  # the judge's, where most of them carry one and the same; else ""
    example: str  # the most frequent message as it came
    varying: tuple[str, ...]  # where one thing varies: what stands there, most frequent first
    positions: tuple[int, ...]  # of the failed calls


def error_groups(calls: Sequence[ToolCallResult], lines: Mapping[int, str]) -> list[ErrorGroup]:
    """Failures grouped by message; largest group first, then in order of appearance.

    `lines`: the telling line of each failed call, by position.
    """
    groups: dict[str, list[int]] = {}
    for position, line in lines.items():
        groups.setdefault(mask(line), []).append(position)
    merged = _merged(groups)
    made = [_group(calls, [lines[i] for i in positions], positions, label) for label, positions in merged.items()]
    return sorted(made, key=lambda group: -len(group.positions))


def _merged(groups: dict[str, list[int]]) -> dict[str, list[int]]:
    """Groups whose masked messages differ in one unquoted word (not among the first two) become one."""
    blanks: dict[tuple[str, ...], list[str]] = {}
    for label in groups:
        words = label.split()
        for i in range(2, len(words) if len(words) <= MAX_WORDS else 0):
            if STATUS.search(words[i]):
                continue
            blanks.setdefault((*words[:i], "\0", *words[i + 1 :]), []).append(label)
    merged = dict(groups)
    for blank, labels in sorted(blanks.items(), key=lambda item: -len(item[1])):
        left = [label for label in labels if label in merged]
        if len(left) > 1:
            shared = " ".join(MASK if word == "\0" else word for word in blank)
            members = sorted(position for label in left for position in merged.pop(label))
            merged[shared] = sorted([*merged.get(shared, []), *members])
    return merged


def _group(calls: Sequence[ToolCallResult], lines: Sequence[str], positions: Sequence[int], merged: str) -> ErrorGroup:
    classes = Counter(calls[i].error_class for i in positions)
    (common, count) = classes.most_common(1)[0]
    counted = Counter(lines)
    example = min(counted, key=lambda line: (-counted[line], len(line), line))
    label, varying = _shared(list(counted)[:MAX_COMPARED], merged)
    often: Counter[str] = Counter()
    for thing, line in zip(varying, counted, strict=False):
        often[thing] += counted[line]
    return ErrorGroup(
        label=label[:MAX_LINE],
        error_class=common if count * 2 > len(positions) else "",
        example=example[:MAX_LINE],
        varying=tuple(by_frequency(often)),
        positions=tuple(positions),
    )


def _shared(lines: Sequence[str], merged: str) -> tuple[str, list[str]]:
    """The mask of `lines`, with those names put back that all of them share; `merged` where their words differ.

    With it what varies, line by line, where that is a single thing.
    """
    if any(mask(line) != merged for line in lines):
        return _shared_words(lines) or (merged, [])
    hidden, kept = hide_status(lines[0])
    pieces = MASKED.split(hidden)
    names = [MASKED.findall(hide_status(line)[0]) for line in lines]
    if any(len(found) != len(pieces) - 1 for found in names):
        return mask(lines[0]), []
    out, differing = [pieces[0]], []
    for i, piece in enumerate(pieces[1:]):
        same = len(names[0][i]) <= MAX_NAME and all(found[i] == names[0][i] for found in names)
        out += [names[0][i] if same else _quoted_mask(names[0][i]), piece]
        differing += [] if same else [i]
    varying = [found[differing[0]] for found in names] if len(differing) == 1 else []
    return restore("".join(out), kept), varying


def _shared_words(lines: Sequence[str]) -> tuple[str, list[str]] | None:
    """The words that all of `lines` have in the same place, and what varies; None where they differ in length."""
    split = [line.split() for line in lines]
    if any(len(words) != len(split[0]) for words in split):
        return None
    places = list(zip(*split, strict=True))
    differing = [words for words in places if len(set(words)) > 1]
    label = " ".join(words[0] if len(set(words)) == 1 else MASK for words in places)
    return label, list(differing[0]) if len(differing) == 1 else []


def _quoted_mask(name: str) -> str:
    first = name[:1]
    return f"{first}{MASK}{first}" if first in "'\"`" else MASK
