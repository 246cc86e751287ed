"""Say what calls that worked show of a parameter: where its values come from, how they are written.

The card and advice say this of a parameter whose value is not shown because it belongs to another
entity. The card also says it of values that come from other tools; advice, of a parameter that an
error names. Where an error calls a program or path missing, advice names one that worked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from toolmem.guidance.context import holders, new_values
from toolmem.guidance.differences import NOT_GIVEN, alike, missing_program
from toolmem.guidance.evidence import Findings
from toolmem.guidance.harmful import runs_what_it_fetches
from toolmem.guidance.observations import (
    MAX_TEXT,
    Calls,
    Command,
    Observation,
    arguments_of,
    leaves,
)
from toolmem.guidance.shown_values import (
    arguments_shown,
    form_of,
    holds_user_value,
    value_shown,
    written_form,
)
from toolmem.guidance.wording import Wording, in_backticks
from toolmem.models.calls import ToolCallResult, shared_origin
from toolmem.models.guidance import Failure, Line, Repair
from toolmem.text.display import plain_line
from toolmem.text.error_lines import error_class_of, is_named
from toolmem.text.forms import word_set
from toolmem.view.parameters import words_of

MAX_LINES = 2
MAX_CARRIERS = 50  # newest calls whose values are searched for in earlier results
MAX_INSTEAD = 3  # parameters that calls gave in place of an unknown one
MAX_VALUES = 6  # values of a parameter that are listed
LEAST_CALLS = 3  # calls that worked; with fewer, no form and no list of values is shown
_MAX_IDS = 3
# Values that are choices and name nobody: `en`, `read-only`, USD.
_ENUM = re.compile(r"[a-z][a-z0-9_.-]{0,29}|[A-Z]{2,4}")
_WORD = re.compile(r"[a-z]{3,}")
_PATH = re.compile(
    r"(?<![\w./:@-])[\w.-]{0,80}(?:/[\w.-]{1,80}){1,10}/?"
    r"|(?<![\w./:@-])[\w-]{1,80}(?:/|\.\w{1,6})(?![\w/.])"
)
_STOP_WORDS = word_set("the and new name number type list ids not for can all")


class Lessons:
    """What calls that worked show of a tool's parameters. `failures`: with their repairs."""

    def __init__(self, found: Findings, failures: Sequence[Failure], wording: Wording) -> None:
        self.found = found
        self.wording = wording
        self._failures = failures
        self.named: dict[str, list[Repair]] = {}  # the tools and values that lessons name, by path
        self._sources: dict[str, Counter[str]] = {}
        self._repairs: Counter[str] = Counter()
        # Where the calls behind a lesson were imported from, by path.
        self.origins: dict[str, str | None] = {}
        for repair, k in ((each.repair, each.k) for one in failures for each in one.repairs):
            if repair.kind == "source":
                self._sources.setdefault(repair.path, Counter())[repair.after] += k
            elif repair.kind in ("changed", "added", "renamed"):
                self._repairs[repair.path] += k

    def of(self, path: str, part: str, sent: Any = None) -> str:
        """Write the lesson on a parameter: the source of its values, their form or usual values.

        `path`: the parameter. `part`: only calls of this part of the tool show how its values are
        written. `sent`: the value that failed. Returns "" if nothing of use is known.
        """
        if source := self._source(path):
            return source
        if sent is None:
            return self._used(path) or self._written(path, part, sent)
        return self._written(path, part, sent) or self._used(path)

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield (parameter, lesson) of each parameter whose values came from other tools."""
        pairs = zip(self.found.observed, self.found.worked, strict=True)
        given = (one.arguments.items() for one, worked in pairs if worked)
        names = [str(name) for items in given for name, value in items if type(value) is not list]
        for path in dict.fromkeys(names):
            if lesson := self._source(path) or self._used(path, LEAST_CALLS):
                yield path, lesson

    def _source(self, path: str) -> str:
        sources = self._sources.get(path)
        n = self._repairs[path]
        if not sources or n < 2:
            return ""
        tool, k = sources.most_common(1)[0]
        k = min(k, n)
        if 2 * k <= n:
            return ""
        self.named[path] = [Repair("source", path, after=tool)]
        behind = (one for one in self._failures if any(e.repair.path == path for e in one.repairs))
        self.origins[path] = shared_origin(one.imported for one in behind)
        return self.wording.phrase("source", tool=self.wording.names([tool]), k=k, n=n)

    def _used(self, path: str, least: int = 2) -> str:
        """Say which tools had the value in earlier results, if most calls that worked got it so."""
        found = self.found
        tools = Counter[str]()
        carriers = list[ToolCallResult]()
        calls = [i for i, worked in enumerate(found.worked) if worked][-MAX_CARRIERS:]
        for i in calls:
            value = found.observed[i].arguments.get(path, NOT_GIVEN)
            values = new_values(path, NOT_GIVEN, value)
            if isinstance(value, list) and any(isinstance(each, dict) for each in value):
                # Plain numbers occur in results by chance.
                values = {each for each in values if any(map(str.isalpha, each))}
            if values:
                carriers.append(found.calls[i])
                before = found.context.before(found.calls[i])
                tools.update(sorted(holders(before, values) - {found.calls[i].tool_name}))
        n = len(carriers)
        most = max(tools.values(), default=0)
        if n < least or 2 * most <= n:
            return ""
        names = [tool for tool, k in tools.most_common(2) if 5 * k >= 4 * most]
        self.named[path] = [Repair("source", path, after=tool) for tool in names]
        self.origins[path] = shared_origin(each.imported for each in carriers)
        return self.wording.phrase("used", tool=self.wording.names(names), k=most, n=n)

    def _written(self, path: str, part: str, sent: Any) -> str:
        """Say how values that worked are written, if `sent` is not written so; "" otherwise."""
        found = self.found
        calls = [i for i, o in enumerate(found.observed) if found.worked[i] and o.part == part]
        for inner in (path, f"{path}[]"):
            given = [v for i in calls for v in values_at(found.observed[i].arguments, inner)]
            if given and not isinstance(given[0], list):
                break
        if len(given) < LEAST_CALLS or sent in given:
            return ""
        self.origins[path] = shared_origin(found.calls[i].imported for i in calls)
        if all(type(value) in (int, float) for value in given):
            return self.wording.phrase("number", n=len(given)) if isinstance(sent, str) else ""
        texts = [value for value in given if isinstance(value, str) and value]
        if len(texts) < len(given):
            return ""
        return self._form(path, texts, sent) or self._often(path, texts)

    def _form(self, path: str, texts: list[str], sent: Any) -> str:
        """Say which form all texts have and `sent` lacks; "" if there is none."""
        hidden = {str(value_shown(path, text)) for text in texts}
        if len(hidden) == 1 and str(value_shown(path, sent)) not in hidden and "<" in min(hidden):
            return self.wording.phrase("form", form=min(hidden), n=len(texts))
        forms = {form_of(text) for text in texts}
        is_masked = str(sent).startswith("<")
        is_form = len(forms) == 1 and len(set(texts)) > 1 and form_of(str(sent)) not in forms
        form = written_form(texts) if is_form and not is_masked else ""
        return self.wording.phrase("form", form=in_backticks(form), n=len(texts)) if form else ""

    def _often(self, path: str, texts: list[str]) -> str:
        """Say which values are given most often, if there are few different values."""
        counts = Counter(texts)
        are_choices = all(map(_ENUM.fullmatch, counts)) and not holds_user_value(path)
        if not are_choices or 2 * len(counts) > len(texts):
            return ""
        often = counts.most_common(MAX_VALUES)
        self.named[path] = [Repair("value", path, after=value) for value, _ in often]
        values = [self.wording.phrase("often", what=in_backticks(v), k=k) for v, k in often]
        values += [] if len(often) == len(counts) else ["…"]
        return self.wording.phrase("values", values=self.wording.phrase("list").join(values))


def parameter_lines(
    lessons: Lessons, call: ToolCallResult, observation: Observation, message: str
) -> list[Line]:
    """Write lines on the parameters that an error names. `message`: the error line of `call`."""
    found = lessons.found
    wording = lessons.wording
    good = [i for i in _of_same_action(found, observation) if found.worked[i]]
    lines = []
    for path, is_missing in _named_in(found, observation, message):
        sent = values_at(observation.arguments, path)
        values = {i: values_at(found.observed[i].arguments, path) for i in good}
        given = [i for i in good if values[i]]
        k, n = len(given), len(good)
        # A value that worked elsewhere is not what was wrong.
        if not n or (is_missing and not k) or any(values[i] == sent for i in given):
            continue
        name = wording.names([path])
        instead = [] if k else _instead(found, arguments_of(call.input), good)
        lesson = lessons.of(path, observation.part, sent[0] if sent else None) if k else ""
        if is_missing:
            phrase = "asked_for"
        elif error_class_of(message) == "permission_denied":
            continue  # another value would evade it
        elif lesson or (k and _names_value(message, sent)):
            phrase = "given_otherwise"
        elif instead or (not k and is_named(message, path.rpartition(".")[2])):
            phrase = "given_never"
        else:
            continue
        text = wording.phrase(phrase, name=name, k=k, n=n)
        if lesson:
            text += wording.phrase("list") + lesson
        if instead:
            text += wording.phrase("gave", names=wording.names(instead))
        if k:
            taught = lessons.named.get(path, []) if lesson else []
            repairs = [Repair("added" if is_missing else "changed", path), *taught]
        else:
            repairs = _without(path, instead)
        ids = tuple(found.ids[i] for i in (given or good)[-_MAX_IDS:])
        line = Line(plain_line(text), "failure", k=k, n=n, call_ids=ids, repairs=tuple(repairs))
        origins = [found.calls[i].imported for i in good]
        origins += [lessons.origins[path]] if lesson else []
        lines.append(wording.marked(line, shared_origin(origins)))
        if len(lines) == MAX_LINES:
            break
    return lines


def _without(path: str, instead: Sequence[str]) -> list[Repair]:
    """Return the repairs for a parameter that no working call gave. `instead`: what they gave."""
    if not instead:
        return [Repair("dropped", path)]
    renamed = [Repair("renamed", name, path) for name in instead]
    return renamed + [Repair("added", name) for name in instead]


def _names_value(message: str, values: Sequence[Any]) -> bool:
    """Whether an error names one of these values, or a value inside a list or object of them."""
    inside = (str(value) for each in values for _, value in leaves({"": each}))
    return any(len(value) > 1 and is_named(message, value) for value in inside)


def _of_same_action(found: Findings, observation: Observation) -> Iterator[int]:
    """Yield positions of the calls with the same action; of all calls if a tool has no actions."""
    name, word = observation.action or ("", "")
    for i, other in enumerate(found.observed):
        if not name or other.arguments.get(name) == word:
            yield i


def values_at(arguments: dict[str, Any], path: str) -> list[Any]:
    """Return the values at a path: several if the path leads into a list."""
    return [value for where, value in leaves(arguments) if where == path]


def _named_in(
    found: Findings, observation: Observation, message: str
) -> Iterator[tuple[str, bool]]:
    """Yield (parameter, whether it is missing) for parameters that an error names, surest first."""
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
    others = (found.observed[i] for i in _of_same_action(found, observation))
    paths = (path.partition("[]")[0] for other in others for path, _ in leaves(other.arguments))
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
    """Return parameters that most calls that worked gave and the failed call did not give."""
    given = Counter(str(name) for i in good for name in found.observed[i].arguments)
    often = [name for name, k in given.most_common() if name not in sent and 2 * k > len(good)]
    return often[:MAX_INSTEAD]


def program_line(lessons: Lessons, observation: Observation, message: str) -> Line | None:
    """Name programs that worked in other commands, if the error calls a program missing."""
    texts = ((path, t) for path, t in observation.texts.items() if isinstance(t, Command))
    path, command = next(texts, ("", Command()))
    missing = missing_program(message, command)
    if not missing:
        return None
    found = lessons.found
    wording = lessons.wording
    commands = [
        (text.main, call)
        for call, one, worked in zip(found.calls, found.observed, found.worked, strict=True)
        if worked and not runs_what_it_fetches(one)
        for text in one.texts.values()
        if isinstance(text, Command) and text.main != missing
    ]
    counts = Counter(name for name, _ in commands)
    order = sorted(counts, key=lambda name: (not alike(name, missing), -counts[name]))[:MAX_VALUES]
    often = [wording.phrase("often", what=in_backticks(name), k=counts[name]) for name in order]
    if not often:
        return None
    text = wording.phrase("programs", names=wording.phrase("list").join(often))
    repairs = tuple(Repair("program", path, after=name) for name in order)
    line = Line(plain_line(text), "failure", repairs=repairs)
    return wording.marked(line, shared_origin(c.imported for name, c in commands if name in order))


def nearby_line(around: Calls, call: ToolCallResult, message: str, wording: Wording) -> Line | None:
    """Name a similar path that worked, if the error says that a path of `call` is not found."""
    missing = [path for path in _paths(call) if is_named(message, path.strip("/"))]
    if not missing or error_class_of(message) != "not_found":
        return None
    known = Counter(
        path for each in around if each.failed is False for path in dict.fromkeys(_paths(each))
    )
    wanted = missing[0].strip("/")
    last = wanted.rpartition("/")[2]
    near = [
        path
        for path in known
        if path.strip("/") != wanted
        and (path.rstrip("/").rpartition("/")[2] == last or alike(path.strip("/"), wanted))
    ]
    if not near:
        return None
    path = max(near, key=lambda each: known[each])
    text = wording.phrase(
        "nearby", path=in_backticks(wanted), near=in_backticks(path), k=known[path]
    )
    worked = {
        name: value.replace(wanted, path.strip("/")) if isinstance(value, str) else value
        for name, value in arguments_of(call.input).items()
    }
    behind = (each.imported for each in around if each.failed is False and path in _paths(each))
    line = Line(plain_line(text), "failure", worked=arguments_shown(worked))
    return wording.marked(line, shared_origin(behind))


def _paths(call: ToolCallResult) -> list[str]:
    """Return the relative paths among the arguments of a call."""
    texts = (value for _, value in leaves(arguments_of(call.input)) if isinstance(value, str))
    found = (word for text in texts for word in _PATH.findall(text[:MAX_TEXT]))
    return [word for word in found if not word.startswith("/") and ".." not in word]
