"""The parameter that an error is about, and what calls that worked gave there: told of errors nobody repaired yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.card_lines import named
from toolmem.guidance.counted.conditions import Observation
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.shown import claim_text
from toolmem.models import Claim, Subject, ToolCallResult

MAX_TARGETS = 2
MAX_READ = 100  # parameters of a call, and values inside one
MAX_CARRIERS = 50  # calls whose earlier results are looked through
LOOK_BACK = 30  # calls of a conversation before such a call
MAX_OUTPUT = 20_000  # characters of a result that is looked through
LEAST_VALUE = 3  # characters of a value that is looked for
MAX_IDS = 3
MAX_INSTEAD = 3  # parameters that calls give in the place of one that does not exist
_WORD = re.compile(r"[a-z]{3,}")
_NO_THING = frozenset({"the", "and", "new", "name", "number", "type", "list", "ids", "not", "for", "can", "all"})


def on_parameters(
    found: Analysis, around: Sequence[ToolCallResult], conversation: str, seen: Observation, line: str, key: str
) -> list[Claim]:
    """Up to MAX_TARGETS lines. `around`: calls of all tools; `line`: what went wrong; `key`: the same, masked."""
    good = found.where(True)
    told = []
    for path, missing in islice(_named_in(found, seen, line), MAX_TARGETS) if good else ():
        with_it = [i for i in good if _given(found.seen[i].params, path)]
        if with_it or not missing:
            told.append(_line(found, around, conversation, seen, (path, missing), good, with_it, key))
    return told


def _line(
    found: Analysis,
    around: Sequence[ToolCallResult],
    conversation: str,
    seen: Observation,
    what: tuple[str, bool],
    good: Sequence[int],
    with_it: Sequence[int],
    key: str,
) -> Claim:
    path, missing = what
    k, n = len(with_it), len(good)
    repairs = [Repair("added" if missing else "changed", path)] if with_it else []
    text = f"`{named(path)}`, which the error {'asks for' if missing else 'is about'}: "
    text += f"{k} of {n} calls that worked gave {'it' if missing else 'another one' if k else 'it'}"
    if not missing and k < n:
        repairs.append(Repair("dropped", path))
    if not k and (instead := _instead(found, seen, good)):
        text += f"; they gave {', '.join(f'`{named(name)}`' for name in instead)}"
        repairs += [each for name in instead for each in (Repair("renamed", name, path), Repair("added", name))]
    carrier, held, asked = _carrier(found.tool_name, around, path) if with_it else ("", 0, 0)
    if carrier:
        text += f"; {held} of {asked} had it from a result of `{named(carrier)}`"
        own = [call for call in around if conversation and call.conversation_id == conversation]
        if conversation and all(call.tool_name != carrier for call in own):
            text += ", which this conversation has not called yet"
    about = Subject(form="parameter", path=path, error=key, repairs=tuple(repairs))
    ids = tuple(found.ids[i] for i in (with_it or good)[-MAX_IDS:])
    return Claim(text=claim_text(text), k=k, n=n, call_ids=ids, kind="parameter", subject=about)


def _named_in(found: Analysis, seen: Observation, line: str) -> Iterator[tuple[str, bool]]:
    """(parameter, whether it was not given), the surest first."""
    words = {_singular(word) for word in _WORD.findall(line.lower())} - _NO_THING
    ranked = []
    for place, (path, value) in enumerate(islice(_paths(seen), MAX_READ)):
        name = path.rpartition(".")[2]
        if values.is_written_in(line, path) or values.is_written_in(line, name):
            ranked.append((0, place, path, False))
        elif any(len(text) > 1 and values.is_written_in(line, text) for text in _texts(value)):
            ranked.append((1, place, path, False))
        elif words & _words_of(name):
            ranked.append((2, place, path, False))
        elif any(words & _words_of(text) for text in _texts(value) if " " not in text):
            ranked.append((3, place, path, False))
    given = {path for path, _ in _paths(seen)}
    known = dict.fromkeys(path for one in found.seen for path, _ in islice(_paths(one), MAX_READ))
    for place, path in enumerate(islice(known, MAX_READ)):
        if path not in given and values.is_written_in(line, path.rpartition(".")[2]):
            ranked.append((0, place, path, True))
    for rank, _, path, missing in sorted(ranked):
        if rank == min(ranked)[0] or rank < 2:
            yield path, missing


def _paths(seen: Observation) -> Iterator[tuple[str, Any]]:
    """Parameters with their values, those inside objects by the path of the field; no statements and commands."""

    def inside(prefix: str, given: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
        for name, value in given.items():
            if isinstance(value, dict) and value and depth > 1:
                yield from inside(f"{prefix}{name}.", value, depth - 1)
            elif f"{prefix}{name}" not in seen.texts:
                yield f"{prefix}{name}", value

    return inside("", seen.params, values.MAX_DEPTH)


def _given(params: dict[str, Any], path: str) -> bool:
    value: Any = params
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


def _texts(value: Any, depth: int = 3) -> Iterator[str]:
    """The short values inside of one."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value)
        if 0 < len(text) <= values.MAX_TEXT:
            yield text[:200]
    elif isinstance(value, list | dict) and depth:
        for each in islice(value.values() if isinstance(value, dict) else value, MAX_READ):
            yield from _texts(each, depth - 1)


def _words_of(name: str) -> set[str]:
    """Of a name, or of an id that begins with words: `gift_card_77`."""
    return {_singular(word) for word in _WORD.findall(values.spaced(name[:200]).lower())} - _NO_THING


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _instead(found: Analysis, seen: Observation, good: Sequence[int]) -> list[str]:
    """Parameters that most calls that worked gave, and this one did not."""
    given = Counter(str(name) for i in good for name in found.seen[i].params)
    return [name for name, k in given.most_common() if name not in seen.params and 2 * k > len(good)][:MAX_INSTEAD]


def _carrier(tool_name: str, around: Sequence[ToolCallResult], path: str) -> tuple[str, int, int]:
    """(tool, k, n): k of the n newest calls that worked gave a value that a result of the tool had held before."""
    before: dict[str, list[ToolCallResult]] = {}
    found: Counter[str] = Counter()
    asked = 0
    uses = [call for call in around if call.tool_name == tool_name and call.failed is False]
    looked = {id(call) for call in uses[-MAX_CARRIERS:]}
    for call in around:
        earlier = before.setdefault(call.conversation_id, [])
        value = values.at(values.parameters(call.input), path) if id(call) in looked else None
        if isinstance(value, str | int) and not isinstance(value, bool) and len(text := str(value)) >= LEAST_VALUE:
            asked += 1
            if call.conversation_id:
                held = (each for each in earlier[-LOOK_BACK:] if text in each.output[:MAX_OUTPUT])
                found.update({each.tool_name for each in held if each.tool_name != tool_name})
        earlier.append(call)
    if not found:
        return "", 0, asked
    (tool, k), *_ = found.most_common(1)
    return tool, k, asked
