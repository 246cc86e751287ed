"""Which parameter an error is about: what can be said of a failure before anybody repaired one.

A message points at a parameter where it shares words with the parameter's name ("flight … not available" and
`flights`), quotes its value, or has words of its value (`gift_card_5094406` and "gift card balance"). Of several, those
that share most words. A call that gives a single parameter has nothing else to change. What is stated is this, as
counts; that changing it helps is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.guidance import values
from toolmem.guidance.analysis import Analysis
from toolmem.guidance.error_messages import MASK, ErrorGroup
from toolmem.guidance.outcomes import passing
from toolmem.guidance.repairs import Repair

LEAST_WORD = 3  # letters of a word that may point at a parameter
MOST = 2  # parameters that one kind of error may point at
SHARE = 0.6  # of the failures of a kind that must point at the same parameter
MAX_WORDS_OF_A_VALUE = 6  # of longer values no word is looked for
# Words of names and messages that point nowhere.
_VAGUE = frozenset(
    {
        *("the", "and", "for", "not", "with", "from", "this", "that", "was", "are", "one", "get", "got", "has", "have"),
        *("can", "all", "any", "use", "its", "your", "you", "does", "did", "must", "cannot", "only", "new"),
        *("error", "failed", "invalid", "missing", "required", "found", "exist", "available", "parameter", "argument"),
        *("value", "field", "data", "list", "type", "code", "line", "input", "output", "string", "number", "text"),
        *("command", "name"),
    }
)
_REQUIRED = re.compile(r"required|missing|must (?:provide|specify|supply)|缺少|必填|不能为空", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}|[\u4e00-\u9fff]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Pointing = Literal["named", "wanted", "only"]


@dataclass(frozen=True, slots=True)
class Target:
    """A parameter that failures of one kind are about.

    `how`: named (the message is about it), wanted (it asks for it, and the calls did not give it), only (nothing else
    was given). `positions`: the failures of which that holds.
    """

    path: str
    how: Pointing
    positions: tuple[int, ...]


def targets(found: Analysis, group: ErrorGroup) -> Iterator[Target]:
    """The parameters that `group`'s failures are about; nothing for failures that no input is to blame for."""
    if all(passing(found.calls[i]) for i in group.positions):
        return
    held: dict[tuple[str, Pointing], list[int]] = {}
    for i in group.positions:
        for key in _of_call(found, i):
            held.setdefault(key, []).append(i)
    enough = [(key, places) for key, places in held.items() if len(places) >= SHARE * len(group.positions)]
    enough.sort(key=lambda item: (-len(item[1]), item[0]))
    for (path, how), places in enough[:MOST]:
        yield Target(path, how, tuple(places))


def unrelated(found: Analysis, group: ErrorGroup) -> frozenset[str]:
    """Parameters that change with nearly every call, and that the error is not about: their change repairs nothing."""
    if not found.restless:
        return frozenset()
    return found.restless - {target.path for target in targets(found, group)}


def noise(repair: Repair, names: Collection[str]) -> bool:
    """Whether a repair is no more than the change of a parameter in `names`, without a change of its form."""
    return repair.kind == "changed" and repair.path in names and not (repair.before or repair.after)


def _of_call(found: Analysis, position: int) -> Sequence[tuple[str, Pointing]]:
    params = found.seen[position].params
    line = found.messages[position]
    wanted = _wanted(found, params.keys(), line)
    if wanted:
        return [(wanted, "wanted")]
    given = [(path, value) for path, value in values.leaves(params) if not path.endswith("[]") and "[]." not in path]
    free = [path for path, _ in given if path not in found.text_kinds]
    if len(given) == 1:
        return [(free[0], "only")] if free and free[0] else []
    shared = {str(name): _shared(str(name), value, line) for name, value in params.items() if name in free or value}
    shared = {name: count for name, count in shared.items() if name not in found.text_kinds}
    most = max(shared.values(), default=0)
    return [(name, "named") for name, count in shared.items() if most and count == most][:MOST]


def _wanted(found: Analysis, given: Iterable[str], line: str) -> str:
    """A parameter known from other calls that the message asks for and the call does not give."""
    if not _REQUIRED.search(line):
        return ""
    held = set(given)
    known = sorted((name for name in found.names if name not in held), key=lambda name: (-len(name), name))
    return next((name for name in known if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line)), "")


def _shared(name: str, value: object, line: str) -> int:
    """How much of the message is about the parameter: words of its name, and of its value."""
    said = set(_stems(line))
    of_name = len(said & set(_stems(name)))
    if isinstance(value, str) and len(value) > 2 and re.search(rf"(?<!\w){re.escape(value[:80])}(?!\w)", line):
        of_name += 2
    return of_name + (1 if _value_words(value) & said else 0)


def _value_words(value: object) -> set[str]:
    if not isinstance(value, str) or len(value) > 80:
        return set()
    words = _stems(value)
    return set(words) if len(words) <= MAX_WORDS_OF_A_VALUE else set()


def _stems(text: str) -> list[str]:
    """Words in lower case, without a plural s; those that point nowhere left out."""
    found = _WORD.findall(_CAMEL.sub(" ", text.replace(MASK, " ")).replace("_", " "))
    stems = [word.lower().removesuffix("s") if len(word) > 3 else word.lower() for word in found]
    return [stem for stem in stems if len(stem) >= LEAST_WORD and stem not in _VAGUE and f"{stem}s" not in _VAGUE]
