"""Which parameter an error names: what can be said of a failure before anybody repaired one.

A message names a parameter where it holds its whole name, as it is written or as words, in singular or plural
("flight … not available" and `flights`; "flight" alone says nothing of `flight_type`), or one of the values that the
call gave it. Of several, the one that is named most exactly: a name as it is written goes before a value, a value
before words, a longer one before a shorter one. A call that gives a single parameter has nothing else to change. What
is stated is this, as counts; that the parameter is at fault, or that changing it helps, is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_groups import ErrorGroup
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.outcomes import passing
from toolmem.readers.error_messages import MASK

LEAST_WORD = 3  # letters of a word that names a parameter by itself, and of a value that is looked for
LEAST_NUMBER = 4  # digits of a number in a text that is looked for: shorter ones stand for something else too often
MAX_VALUE = 80  # characters of a value that are looked for
MOST = 2  # parameters that one kind of error may name
MOST_READ = 50  # messages of a kind that are read for a parameter's name
SHARE = 0.6  # of the failures of a kind that must name the same parameter
# Words that name nothing by themselves.
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
_UNKNOWN = re.compile(
    r"(?:unknown|unexpected|unrecogni[sz]ed|extra|additional) (?:keyword )?(?:argument|parameter|property|field|key)"
    r"|is not an? (?:known |valid )?(?:parameter|argument|field)|(?:未知|多余|不支持)的?参数",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]{2,}|[\u4e00-\u9fff]+")

Pointing = Literal["named", "wanted", "unknown", "only"]
_AT_FAULT: tuple[Pointing, ...] = ("named", "wanted")


@dataclass(frozen=True, slots=True)
class Target:
    """A parameter that failures of one kind name.

    `how`: named (the message holds its name or its value), wanted (it asks for it, and the calls did not give it),
    unknown (the message says that there is none), only (nothing else was given). `positions`: the failures of which
    that holds.
    """

    path: str
    how: Pointing
    positions: tuple[int, ...]


def targets(found: Analysis, group: ErrorGroup) -> Iterator[Target]:
    """The parameters that `group`'s failures name; nothing for failures that no input is to blame for."""
    if all(passing(found.calls[i]) for i in group.positions):
        return
    held: dict[tuple[str, Pointing], list[int]] = {}
    for i in group.positions:
        for key in _of_call(found, i):
            held.setdefault(key, []).append(i)
    enough = [
        (key, places)
        for key, places in held.items()
        if len(places) >= SHARE * len(group.positions) and not (key[1] == "only" and key[0] in found.users_own)
    ]
    enough.sort(key=lambda item: (-len(item[1]), item[0]))
    for (path, how), places in enough[:MOST]:
        yield Target(path, how, tuple(places))


class NoAdvice:
    """Changes that are no advice after errors of one kind, though a success followed them.

    A parameter that changes with nearly every call, and with which the error has no word in common; a value of the
    user's own (`users_own`), whom, how much, which one, when, unless the error names the parameter: that the call
    worked for another recipient is no reason to write to that one. A change of its form may be told. Nor is a
    parameter that was added along the way, where the errors name others and not this one.
    """

    def __init__(self, found: Analysis, group: ErrorGroup) -> None:
        self._own = found.users_own
        self._lines = [found.messages[i] for i in group.positions[:MOST_READ]]
        self._restless = frozenset[str]()
        pointed = {target.path.partition(".")[0] for target in targets(found, group) if target.how in _AT_FAULT}
        failed = frozenset(group.positions)
        made = (repair for one in found.repaired if one.failure in failed for repair in one.repairs)
        replaced = any(one.kind in {"dropped", "renamed"} and pointed & {one.path, one.before} for one in made)
        self._pointed = frozenset() if replaced else frozenset(pointed)  # another one may stand in its place
        if found.restless:
            said = {word for i in group.positions for word in _stems(found.messages[i])}
            meant = {name for name in found.restless if said & set(_stems(name))}
            self._restless = found.restless - meant - {target.path for target in targets(found, group)}

    def holds(self, repair: Repair, *, form: bool = True) -> bool:
        """Whether the repair is no advice; `form`: whether a change of its form would be told with it."""
        if repair.kind == "added":
            beside = repair.path.partition(".")[0] not in self._pointed
            return bool(self._pointed) and beside and not self._named(repair.path)
        if repair.kind not in {"changed", "dropped"}:
            return False
        formed = repair.kind == "changed" and form and bool(repair.before or repair.after)
        if formed:
            return False
        if repair.kind == "changed" and repair.path in self._restless:
            return True
        return repair.path in self._own and not self._named(repair.path)

    def _named(self, path: str) -> bool:
        """Whether the errors name the parameter itself; that they quote its value does not say what is wrong."""
        name = path.rpartition(".")[2]
        named = sum(any(_exactness(name, None, line)) for line in self._lines)
        return named >= SHARE * len(self._lines)


def _of_call(found: Analysis, position: int) -> Sequence[tuple[str, Pointing]]:
    params = found.seen[position].params
    line = found.messages[position]
    wanted = _wanted(found, params.keys(), line)
    if wanted:
        return [(wanted, "wanted")]
    if unknown := _unknown(params, line):
        return [(unknown, "unknown")]
    given = [(path, value) for path, value in values.leaves(params) if not path.endswith("[]") and "[]." not in path]
    free = [path for path, _ in given if path not in found.text_kinds]
    if len(given) == 1:
        return [(free[0], "only")] if free and free[0] else []
    named = {str(name): _exactness(str(name), value, line) for name, value in params.items()}
    named = {name: exactness for name, exactness in named.items() if any(exactness) and name not in found.text_kinds}
    most = max(named.values(), default=(False, 0, 0))
    return [(name, "named") for name, exactness in named.items() if exactness == most][:MOST]


def _wanted(found: Analysis, given: Iterable[str], line: str) -> str:
    """A parameter known from other calls that the message asks for and the call does not give."""
    if not _REQUIRED.search(line):
        return ""
    held = set(given)
    known = sorted((name for name in found.names if name not in held), key=lambda name: (-len(name), name))
    return next((name for name in known if values.is_written_in(line, name)), "")


def _unknown(given: Iterable[str], line: str) -> str:
    """The parameter of which the message says that the tool has none of this name."""
    if not _UNKNOWN.search(line):
        return ""
    return next((name for name in map(str, given) if values.is_written_in(line, name)), "")


def _exactness(name: str, value: object, line: str) -> tuple[bool, int, int]:
    """How exactly the message names the parameter; zeros where it does not.

    (Its name as it is written, characters of its value, words of its name.)
    """
    words = _words(name)
    # `date` may be a word like any other, `end_date` and 'date' in quotation marks may not
    written = values.is_written_in(line, name, quoted=len(words) < 2)
    of_value = max((len(text) for text in _texts(value) if _holds(line, text)), default=0)
    whole = bool(_stems(name)) and set(words) <= set(_words(line))
    return written, of_value, len(words) if whole else 0


def _texts(value: object) -> Iterator[str]:
    """The texts of a value, inside of lists and objects too, as far as they say enough to be looked for."""
    for _, leaf in values.leaves({"": value}):
        text = leaf[:MAX_VALUE] if isinstance(leaf, str) else ""
        if len(text) >= (LEAST_NUMBER if values.number_of(text) is not None else LEAST_WORD):
            yield text


def _holds(line: str, text: str) -> bool:
    """Whether the message holds the text as a word of its own; a word that names nothing only in quotation marks."""
    around = (f"[{values.QUOTES}]",) * 2 if text.lower() in _VAGUE else (r"(?<!\w)", r"(?!\w)")
    return re.search(re.escape(text).join(around), line) is not None


def _stems(text: str) -> list[str]:
    """The words of a text that may name something by themselves."""
    return [word for word in _words(text) if len(word) >= LEAST_WORD and not {word, f"{word}s"} & _VAGUE]


def _words(text: str) -> list[str]:
    """Words in lower case, without a plural s."""
    found = _WORD.findall(values.spaced(text.replace(MASK, " ")).replace("_", " "))
    return [word.lower().removesuffix("s") if len(word) > 3 else word.lower() for word in found]
