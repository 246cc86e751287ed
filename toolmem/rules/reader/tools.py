"""Find the tools that a demand is about: by name, or by what they deal with and what they do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words
from toolmem.text.forms import SHELL_WORDS, snake_case, split_name
from toolmem.view.known_programs import KNOWN_PROGRAMS
from toolmem.view.parameters import words_of
from toolmem.view.patterns import compiled
from toolmem.view.tool_classes import ACTION_NAMES

MAX_VALUES = 200  # values that are read of one enumeration
MAX_OBJECTS = 12  # words in a pattern for what an action is done to
_WORDS = re.compile(r"[a-z][a-z'-]*")
_JOINS = frozenset({"or", "and", "nor"})
_ANY_OBJECT = "all|bulk|batch|many|multiple|single|item|object|record|entry|force|soft|hard|by|id"
_SHELL = SHELL_WORDS | {"exec"}
_RUNS = re.compile(r"\b(?:us(?:e|ing)|run(?:ning)?|execut(?:e|ing)) ([a-z][\w.-]*)")
_OTHER_THINGS = frozenset({"email", "mail", "inbox", "message", "channel"})
_LINK = re.compile(r"\S+://\S+")
_NO_WORD = re.compile(r"[_\-./:\d]|[a-z][A-Z]")  # a name that is no ordinary word: send_email
_ABSOLUTE = r"(?:^|\s)(?:~|\.{1,2})?/[\w.]"
_PATH = re.compile(rf"{_ABSOLUTE}|(?<![\w/])[\w-]+/[\w./-]+|(?:^|\s)\.[a-z]\w+")
# Signs other than words that a sentence is about a thing.
_SIGNS = {
    "mail": re.compile(r"\w@\w"),
    "web": re.compile(r"(?<![\w@.])(?:[\w-]+\.)+(?:com|org|net|io|dev|cn|de)\b"),
    "payment": re.compile(r"[$€£¥￥]\s?\d|\d\s?(?:dollars?|euros?|元|美元)"),
    "phone": re.compile(r"(?<!\w)\+\d[\d -]{6,20}\d"),
    **dict.fromkeys(("chat", "message"), re.compile(r"(?<!\S)#[a-z]")),
    "file": re.compile(rf"{_ABSOLUTE}|\b[\w-]+\.(?:json|ya?ml|toml|md|py|txt|lock|env)\b"),
}
_GIT = re.compile(
    r"(?<!\S)--?[a-z]|\bgit\b|force[- ]?push|\bpush\b.*\b(?:to|main|master)\b|\b(?:re)?base\b"
    r"|\bcommit\b|推送|强推|强制推|提交"
)
# A command in quotation marks: "never use `sudo`".
_QUOTED_COMMAND = re.compile(
    r"(?:\b(?:use|using|run|running|execute|call|type)\b|[用行]) ?\W?`", re.I
)


def catalogue_of(ran: Sequence[str], tools: Sequence[str | ToolSchema]) -> dict[str, ToolSchema]:
    """Return all tools by their names in lower case; the first of several spellings is kept."""
    known: dict[str, ToolSchema] = {}
    for each in (*tools, *ran):
        schema = each if isinstance(each, ToolSchema) else ToolSchema(name=each)
        known.setdefault(schema.name.lower(), schema)
    return known


@lru_cache(maxsize=2_000)
def name_words(name: str) -> frozenset[str]:
    """Return the words of a tool's name, the same for "sendEmail", "send_email" and "sendemail"."""
    found = set(split_name(snake_case(name)))
    for word in found - words.NAME_WORDS:
        parts = [(word[:cut], word[cut:]) for cut in range(3, len(word) - 2)]
        found = found.union(*(pair for pair in parts if words.NAME_WORDS.issuperset(pair)))
    return frozenset(form for word in found for form in words.stems(word))


def is_shell(tool: ToolSchema) -> bool:
    return bool(name_words(tool.name) & _SHELL)


def tools_meant(sentence: str, demanded: str, catalogue: Mapping[str, ToolSchema]) -> list[str]:
    """Return the names of the tools that a demand limits.

    `demanded`: the part of the sentence, in lower case, that says what is limited.
    """
    tools = catalogue.values()
    if named := [tool.name for tool in tools if is_named(tool.name, sentence)]:
        return named
    said_words = words.words_in(demanded)
    things = _things(sentence, demanded, said_words)
    actions = words.mentioned(demanded, said_words, words.ACTIONS)
    plain = _LINK.sub(" ", sentence)
    path = bool(_PATH.search(plain) or _SIGNS["file"].search(plain))
    is_command = _GIT.search(demanded) or _QUOTED_COMMAND.search(sentence)
    by_shell = path or said_words & words.PROGRAMS or is_command or _runs_program(demanded)
    shells = [tool.name for tool in tools if by_shell and is_shell(tool)]
    is_touch = words.mentions(demanded, said_words, words.TOUCH)
    files = [tool.name for tool in tools if path and _handles_files(tool, actions, is_touch)]
    if files:
        return list(dict.fromkeys([*files, *shells]))
    scores = {tool.name: _score(tool, demanded, said_words, things, actions) for tool in tools}
    best = max(scores.values(), default=0)
    likely = [name for name, score in scores.items() if score > 0 and score == best]
    return list(dict.fromkeys([*likely, *shells])) or _by_description(said_words, catalogue)


def action_parameter(tool: ToolSchema) -> str:
    """Return the parameter that says what a call does, as `op` in `files(op, path)`; or ""."""
    if is_shell(tool):
        return ""
    says_itself = bool(name_words(tool.name) & words.VERBS - words.NOUNS)
    for name in tool.properties:
        how = says_itself and name.lower() in ("mode", "method")  # `pay(method="card")`
        is_line = name.lower() == "command" and not values_of(tool, name)
        if name.lower() in ACTION_NAMES and not how and not is_line:
            return name
    return ""


def value_parameter(tool: ToolSchema, word: str) -> str:
    """Return the parameter that can have the value `word`, such as `env` for "prod"; or ""."""
    for name in tool.properties:
        is_listed = word in [each.lower() for each in values_of(tool, name)]
        is_place = word in words.ENVIRONMENTS and words_of(name) & {"env", "environment", "stage"}
        if name != action_parameter(tool) and (is_listed or is_place):
            return name
    return ""


def amount_parameter(tool: ToolSchema) -> str:
    """Return the parameter that takes an amount; "" if there is none, or more than one."""
    declared = tool.properties
    numbers = [
        name
        for name, schema in declared.items()
        if isinstance(schema, Mapping) and schema.get("type") in ("number", "integer")
    ]
    named = [name for name in declared if name_words(name) & words.AMOUNTS]
    found = named or numbers
    return found[0] if len(found) == 1 else ""


def does_by_name(tool: ToolSchema, verb: str) -> bool:
    """Whether a tool's name has a verb or synonym: `delete_file` for "erase". False for a shell."""
    names = name_words(tool.name)
    listed = [each for each in words.ACTIONS.values() if verb in each]
    return not is_shell(tool) and any(names & each for each in listed)


def is_named(name: str, sentence: str) -> bool:
    """Whether a sentence names a tool: send_email, `search`, "the search tool"."""
    quoted = re.escape(name)
    form = rf"`{quoted}`|\b{quoted} tool\b"
    if _NO_WORD.search(name):
        form += rf"|(?<![\w-]){quoted}(?!\w)"
    return bool(re.search(form, sentence, re.I))


def _runs_program(demanded: str) -> bool:
    """Whether a demand is about running a well-known program: "never run poetry publish"."""
    found = _RUNS.search(demanded)
    return bool(found and is_program(found[1]) and found[1] not in words.NOUNS)


def is_program(word: str) -> bool:
    """Whether a word that follows "use" or "run" is a program and no ordinary word."""
    word = word.lower()
    is_ordinary = word in words.FILLERS or word in words.VERBS or word in words.NOUNS
    return word in words.PROGRAMS or (word in KNOWN_PROGRAMS and not is_ordinary)


def _things(sentence: str, demanded: str, said_words: frozenset[str]) -> set[str]:
    """Return the things that a sentence mentions: by word, or by address, host, channel or file."""
    said = words.mentioned(demanded, said_words, words.SPOKEN)
    shown = {name for name, sign in _SIGNS.items() if sign.search(sentence)}
    return said | shown - ({"web"} if "mail" in said | shown else set())


def _score(
    tool: ToolSchema, demanded: str, said_words: frozenset[str], things: set[str], actions: set[str]
) -> int:
    """Score how well a tool's name fits what is said; 0 if the tool does something else."""
    names = name_words(tool.name)
    if "force" in names and "force" not in demanded and "强" not in demanded:
        return 0
    deals_with = {thing for thing in things if names & words.IN_NAMES[thing]}
    acts = names - words.NOUNS
    does = {name for name, listed in words.ACTIONS.items() if acts & listed}
    if deals_with:
        score = 2 * len(deals_with) + len(does & actions)
    else:
        score = 2 if does & actions & words.SPECIFIC_ACTIONS and not things - {"git"} else 0
    does_other = does and actions - {"run"} and not does & actions
    if deals_with and does_other and not names & {"shell", "bash", "browser"}:
        vague = deals_with <= {"file", "message", "web", "sql", "git"}
        score = 0 if vague else score - 1
    shared = names & said_words - words.FILLERS - {"text"}
    return score + 1 if any(len(word) > 3 for word in shared) else score


def _handles_files(tool: ToolSchema, actions: set[str], is_touch: bool) -> bool:
    """Whether a tool, by its name, does one of `actions` to files.

    `is_touch`: the user said "touch", which is to read, write or delete.
    """
    names = name_words(tool.name)
    of_files = {"read", "write", "delete"}
    does = {name for name in of_files if names & words.ACTIONS[name]}
    wanted = of_files if is_touch or not actions & of_files else actions
    plain = names & {"read", "write", "edit"} and not names & _OTHER_THINGS
    return bool(does & wanted and (plain or names & {"file", "files", "document"}))


def _by_description(said_words: frozenset[str], catalogue: Mapping[str, ToolSchema]) -> list[str]:
    """Return the tools whose descriptions share the most words with a demand, at least two."""
    long = {word for word in said_words if len(word) > 3}
    texts = {tool.name: tool.description.lower() for tool in catalogue.values()}
    shared = {name: len(long & words.words_in(text)) for name, text in texts.items()}
    best = max(shared.values(), default=0)
    return [name for name, count in shared.items() if count == best] if best >= 2 else []


# ------------------------------------------------------------ tools of many actions
# One parameter says what a call does, as in `tickets(action, id)`.


class Action(Struct, frozen=True):
    """The action that a demand means, as "delete" for the parameter `op` of `files(op, path)`."""

    parameter: str
    pattern: str  # matches the values that mean it
    example: str  # one of these values
    said: frozenset[str]  # the words of the demand for the action and its objects
    is_sure: bool  # the tool declares it, or its other names are known

    def limit(self, tests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Limit tests to calls with this action, and to calls that leave their action out."""
        own = ({"matches": self.pattern}, {"missing": True})
        return [
            with_argument(test, {"name": self.parameter, **more}) for more in own for test in tests
        ]


def with_argument(test: dict[str, Any], argument: dict[str, Any]) -> dict[str, Any]:
    """Return a test that also compares an argument: {"name": "amount", "over": 500}."""
    given = test.get("arg", [])
    given = given if isinstance(given, list) else [given]
    rest = {name: value for name, value in test.items() if name != "always"}
    return {**rest, "arg": [*given, argument] if given else argument}


def find_action(tool: ToolSchema, demanded: str) -> Action | None:
    """Find the action that a demand means; return None if the tool has no such action.

    `demanded`: the demand in lower case, without its "never".
    """
    parameter = action_parameter(tool)
    values = values_of(tool, parameter)[:MAX_VALUES]
    verbs, spoken, objects = _verbs_and_objects(demanded, tool, values)
    own = spoken.union("".join(pair) for pair in pairwise(demanded.split()))
    own = verbs.intersection(own.union(*map(words.stems, spoken)))
    if "delete" not in verbs and any(_means(value, own) for value in values):
        verbs = own  # a VM may be stopped or terminated: two actions
    meant = [value for value in values if _means(value, verbs)]
    about = _objects_of(tool) | {form for each in objects for form in words.stems(each)}
    fitting = [value for value in meant if verbs | about >= set(split_name(value))]
    if not verbs or (values and not meant) or (len(meant) > 1 and not fitting):
        return None
    meant = fitting or meant
    known = _objects_of(tool).union(*map(split_name, meant))
    understood = {
        each for each in objects if known.intersection((*words.stems(each), each.rstrip("s")))
    }
    if any("".join(word[0] for word in pair) in known for pair in pairwise(objects)):
        understood |= set(objects)  # `merge_pr` for "merge pull requests"
    free = _in_any_form(verbs, about)
    others = [value for value in values if value not in meant]
    if any(compiled(free).search(value.lower()) for value in others):
        free = ""
    exact = "|".join(re.escape(value.lower()) for value in meant)
    patterns = [each for each in (exact and f"^({exact})$", free) if each]
    return Action(
        parameter=parameter,
        pattern="|".join(patterns) if len("|".join(patterns)) <= 500 else patterns[0],
        example=meant[0] if meant else min(verbs),
        said=spoken | understood,
        is_sure=bool(meant) or not verbs.isdisjoint(words.SAME_ACTION),
    )


def acting_tools(sentence: str, demanded: str, tools: Collection[ToolSchema]) -> list[str]:
    """Return the names of tools that have the demanded action and fit the demand's other words.

    `tools`: tools of many actions. Returns [] if the sentence names one of them.
    """
    if any(is_named(tool.name, sentence) for tool in tools):
        return []
    found = []
    for tool in tools:
        action = find_action(tool, demanded)
        if action is None:
            continue
        values = values_of(tool, action.parameter)[:MAX_VALUES]
        _, spoken, objects = _verbs_and_objects(demanded, tool, values)
        others = frozenset(each for each in objects if each not in action.said)
        is_alone = not words.mentions("", others, words.NOUNS)
        takes_amount = not words.AMOUNTS.isdisjoint(tool.properties)
        is_amount = takes_amount and any(map(str.isdigit, demanded))
        if action.said - spoken or is_amount or (values and is_alone):
            found.append(tool.name)
    return found


def values_of(tool: ToolSchema, parameter: str) -> list[str]:
    """Return the values that a tool's schema lists for a parameter."""
    schema = tool.properties.get(parameter)
    declared = schema.get("enum") if isinstance(schema, Mapping) else None
    return [str(each) for each in declared] if isinstance(declared, list) else []


def _verbs_and_objects(
    demanded: str, tool: ToolSchema, values: Sequence[str]
) -> tuple[frozenset[str], frozenset[str], list[str]]:
    """Return a demand's verbs with synonyms, the words that say them, and all other words."""
    said = _WORDS.findall(demanded)
    if words.CJK.search(demanded):
        listed = sorted((*values, *words.SAME_ACTION), key=len, reverse=True)
        verb = next((each for each in listed if words.CJK.search(each) and each in demanded), "")
        return _synonyms([verb] if verb else []), frozenset([verb]), said
    content = [at for at, word in enumerate(said) if word not in words.FILLERS]
    verbs: set[str] = set()
    spoken: set[str] = set()
    last = -1
    for at in content:
        joined = "".join(said[at : at + 2])  # `rollback` for "roll back"
        is_pair = joined in words.SAME_ACTION or any(_means(value, {joined}) for value in values)
        forms = [joined] if is_pair else list(words.stems(said[at]))
        synonyms = _synonyms(forms)
        fits = any(_means(value, synonyms) for value in values) if values else not verbs
        follows = last < 0 or (at == last + 2 and said[last + 1] in _JOINS)
        is_object = not values and not _objects_of(tool).isdisjoint(forms)
        if follows and not is_object and (fits or (verbs and not values)):
            last = at + 1 if is_pair else at
            verbs = verbs | synonyms
            spoken = spoken.union(said[at : last + 1])
        elif last < 0 and not is_object and said[at] not in words.NOUNS:
            break
    others = [said[at] for at in content if said[at] not in spoken]
    return frozenset(verbs), frozenset(spoken), others


def _synonyms(forms: Iterable[str]) -> frozenset[str]:
    """Return the synonyms of a verb in any of these forms, or else the forms."""
    return frozenset().union(*(words.SAME_ACTION.get(form, {form}) for form in forms))


def _means(value: str, verbs: AbstractSet[str]) -> bool:
    """Whether a value says one of the verbs: `drop_table`, not `list_deleted` or `undo_delete`."""
    parts = split_name(value)
    if not parts or parts[0] in verbs or "".join(parts) in verbs:
        return bool(parts)
    is_other = parts[0] in words.SAME_ACTION or parts[0] in words.VERBS - words.NOUNS
    return not is_other and not verbs.isdisjoint(parts)


def _objects_of(tool: ToolSchema) -> frozenset[str]:
    """Return the objects of a tool's actions, taken from its name and its parameters."""
    declared = (form for name in tool.properties for form in name_words(str(name)))
    return name_words(tool.name).union(declared) - words.VERBS.difference(words.NOUNS)


def _in_any_form(verbs: Collection[str], objects: Collection[str]) -> str:
    """Make a pattern for values that nobody declared: `DELETE`, `delete_ticket`, `bulk-delete`."""
    said = "|".join(re.escape(each) for each in sorted(verbs))
    named = sorted(objects, key=len)[:MAX_OBJECTS]
    what = "|".join([re.escape(each) for each in named if len(each) > 1] + [_ANY_OBJECT])
    return f"^(({what})s?[^a-z]*)*({said})([^a-z]*({what})s?)*$"
