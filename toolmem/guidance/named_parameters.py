"""Lines on the parameters that an error names: what calls that worked gave, and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from toolmem.guidance.evidence import Findings
from toolmem.guidance.observations import Observation, arguments_of, leaves
from toolmem.guidance.wording import Wording
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Line, Repair
from toolmem.text.display import plain_line
from toolmem.text.error_lines import is_named
from toolmem.text.forms import word_set
from toolmem.view.parameters import words_of

MAX_LINES = 2
MAX_INSTEAD = 3  # parameters that calls give in the place of one that does not exist
MAX_CARRIERS = 50  # calls whose earlier results are looked through
LOOK_BACK = 30  # calls of a conversation before such a call
MAX_OUTPUT = 20_000  # characters of a result that is looked through
LEAST_VALUE = 3  # characters of a value that is looked for
_MAX_IDS = 3
_WORD = re.compile(r"[a-z]{3,}")
_STOP_WORDS = word_set("the and new name number type list ids not for can all")


def parameter_lines(
    found: Findings,
    around: Sequence[ToolCallResult],
    call: ToolCallResult,
    observation: Observation,
    message: str,
    say: Wording,
) -> list[Line]:
    """`around`: calls of all tools, oldest first. `message`: the line that says what went wrong."""
    good = [i for i in _of_same_action(found, observation) if found.worked[i]]
    lines = []
    for path, is_missing in _named_in(found, observation, message):
        sent = _values(observation.arguments, path)
        values = {i: _values(found.observed[i].arguments, path) for i in good}
        given = [i for i in good if values[i]]
        k, n = len(given), len(good)
        # Where the same value worked as well, it is not what was wrong.
        if not n or (is_missing and not k) or any(values[i] == sent for i in given):
            continue
        repairs = [Repair("added" if is_missing else "changed", path)] if k else []
        if not is_missing and k < n:
            repairs.append(Repair("dropped", path))
        key = "asked_for" if is_missing else "given_otherwise" if k else "given_never"
        text = say.say(key, name=say.names([path]), k=k, n=n)
        instead = [] if k else _instead(found, arguments_of(call.input), good)
        if instead:
            text += say.say("gave", names=say.names(instead))
            repairs += [Repair("renamed", name, path) for name in instead]
            repairs += [Repair("added", name) for name in instead]
        if k and (carrier := _carrier(call.tool_name, around, path)):
            tool, carried, uses = carrier
            text += say.say("carried", k=carried, n=uses, tool=say.names([tool]))
        ids = tuple(found.ids[i] for i in (given or good)[-_MAX_IDS:])
        lines.append(
            Line(plain_line(text), "failure", k=k, n=n, call_ids=ids, repairs=tuple(repairs))
        )
        if len(lines) == MAX_LINES:
            break
    return lines


def _of_same_action(found: Findings, observation: Observation) -> Iterator[int]:
    """Positions of the calls that did what this call does; all where a tool does one thing."""
    name, word = observation.action or ("", "")
    for i, other in enumerate(found.observed):
        if not name or other.arguments.get(name) == word:
            yield i


def _values(arguments: dict[str, Any], path: str) -> list[Any]:
    """The values at a path; several inside a list."""
    return [value for where, value in leaves(arguments) if where == path]


def _named_in(
    found: Findings, observation: Observation, message: str
) -> Iterator[tuple[str, bool]]:
    """(parameter, whether it was not given), the surest first."""
    words = {_singular(word) for word in _WORD.findall(message.lower())} - _STOP_WORDS
    given = [(path.partition("[]")[0], value) for path, value in leaves(observation.arguments)]
    ranked = []
    for place, (path, value) in enumerate(given):
        name = path.rpartition(".")[2]
        if path in observation.texts:
            continue
        # An id may begin with words: `gift_card_77`.
        start = value[:100] if isinstance(value, str) and " " not in value else ""
        signs = (
            is_named(message, name),
            len(str(value)) > 1 and is_named(message, str(value)[:200]),
            not words.isdisjoint(map(_singular, words_of(name))),
            not words.isdisjoint(map(_singular, words_of(start))),
        )
        if any(signs):
            ranked.append((signs.index(True), place, path, False))
    alike = (found.observed[i] for i in _of_same_action(found, observation))
    paths = (path.partition("[]")[0] for one in alike for path, _ in leaves(one.arguments))
    known = dict.fromkeys(paths)
    sent = {path for path, _ in given}
    ranked += [
        (0, place, path, True)
        for place, path in enumerate(known)
        if path not in sent and is_named(message, path.rpartition(".")[2])
    ]
    yield from dict.fromkeys((path, is_missing) for _, _, path, is_missing in sorted(ranked))


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _instead(found: Findings, sent: dict[str, Any], good: Sequence[int]) -> list[str]:
    """Parameters that most calls that worked gave, and this one did not."""
    given = Counter(str(name) for i in good for name in found.observed[i].arguments)
    often = [name for name, k in given.most_common() if name not in sent and 2 * k > len(good)]
    return often[:MAX_INSTEAD]


def _carrier(
    tool_name: str, around: Sequence[ToolCallResult], path: str
) -> tuple[str, int, int] | None:
    """(tool, k, n): k of n calls that worked gave a value from an earlier result of that tool."""
    before: dict[str, list[ToolCallResult]] = {}
    found: Counter[str] = Counter()
    asked = 0
    uses = [call for call in around if call.tool_name == tool_name and call.failed is False]
    looked = {id(call) for call in uses[-MAX_CARRIERS:]}
    for call in around:
        earlier = before.setdefault(call.conversation_id, [])
        value = dict(leaves(arguments_of(call.input))).get(path) if id(call) in looked else None
        if isinstance(value, str | int) and len(text := str(value)) >= LEAST_VALUE:
            asked += 1
            held = (each for each in earlier[-LOOK_BACK:] if text in each.output[:MAX_OUTPUT])
            if call.conversation_id:
                found.update(sorted({each.tool_name for each in held} - {tool_name}))
        earlier.append(call)
    if not found:
        return None
    (tool, k), *_ = found.most_common(1)
    return tool, k, asked
