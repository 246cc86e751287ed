"""From a sentence to a condition, offline: what is forbidden or asked about, for which tools, and checked on what.

Every word must be accounted for. Where one limits the demand and was not understood, the rule stays a reminder and says
which word it is: never a wider ban than was said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import ToolSchema
from toolmem.sentences.declared_tools import DeclaredTool, able, read_tool
from toolmem.sentences.reading import read
from toolmem.sentences.said_literals import Demand, LiteralValue
from toolmem.sentences.said_words import SENDING
from toolmem.sentences.schemas import (
    all_of,
    any_of,
    forced,
    listed,
    path_like,
    shell_condition,
    sql_condition,
    text_like,
    word_pattern,
)
from toolmem.sentences.split_text import CJK
from toolmem.sentences.trial_calls import trial_of

_LONGEST = 500  # characters of a sentence
# Between two demands of one sentence, each with a word of its own that makes it one
_NEXT_DEMAND = late_pattern(
    r"\s{0,3}[,;]\s{0,3}(?:and\s{1,3})?(?=(?:please\s{1,3})?(?:never|always|do not|don['’]t)\b)"
    r"|\s{1,3}and\s{1,3}(?=(?:please\s{1,3})?(?:never|do not|don['’]t)\b)",
    re.I,
)
_INSTEAD = late_pattern(r"\s{0,3}[,;]\s{0,3}(?:please\s{1,3})?use\s[^,;]{1,80}\sinstead[.!]?\s{0,3}$", re.I)
# A word by which one of them may limit another
_RELAXES = late_pattern(
    r"\b(?:ask\w*|confirm\w*|permission|approv\w*|consent|unless|except|only|otherwise|ok(?:ay)?|agree\w*|allow\w*|may"
    r"|can|could|if|when|while|until|then|but)\b",
    re.I,
)
# Words that stand for somebody or something named elsewhere
_NEW = late_pattern(r"\bnew(?:ly)?\b|新", re.IGNORECASE)  # `npm ci` installs, and what it installs is not
_STANDS_FOR = late_pattern(
    r"\b(?:him|her|them|it|he|she|they|his|hers|their|theirs|its)\b|\b(?:this|that|these|those)\b(?=\s{0,3}(?:[.,;:!]|$"
    r"|(?:to|in|on|at|for|from|with|and|or|again|ever|anymore)\b))"
    r"|[他她它]们?|这[个些]?(?=[，。！\s]|$)|那[个些]?(?=[，。！\s]|$)",
    re.I,
)
_MOST_PARTS = 5


@dataclass(frozen=True, slots=True)
class CheckableDemand:
    """What a sentence becomes: for which tools, to what effect, under which condition."""

    effect: str  # deny, ask or remind
    when: Mapping[str, Mapping[str, Any] | bool] = field(default_factory=dict)  # by tool
    stops: Mapping[str, str] = field(default_factory=dict)  # by tool: a call that was stopped on trial, in words
    reason: str = ""  # of a reminder: why nothing is checked


def asks_first(sentence: str) -> bool:
    """Does the user want to be asked, rather than forbid it?"""
    return len(sentence) <= _LONGEST and read(sentence, frozenset()).effect == "ask"


def condition_of(sentence: str, tools: Sequence[ToolSchema], bound: Sequence[str] = ()) -> CheckableDemand:
    """What a sentence asks to be checked on the calls of `tools`; `bound`: the tools that it was captured for.

    Of a sentence that demands several things, each by itself, what can be checked is.
    """
    if len(sentence) > _LONGEST:
        return CheckableDemand("remind", reason="it is too long to be read as a condition")
    known = [read_tool(schema) for schema in tools]
    whole = _of_one(sentence, known, bound)
    if whole.effect != "remind":
        return whole
    parts = [_of_one(part, known, bound) for part in _demands_in(sentence)]
    denied = [part for part in parts if part.effect == "deny"]
    if not denied:
        return whole
    names = dict.fromkeys(name for part in denied for name in part.when)
    when = {name: _either([part.when[name] for part in denied if name in part.when]) for name in names}
    stops = {name: call for part in reversed(denied) for name, call in part.stops.items()}
    return CheckableDemand("deny", when, stops)


def _demands_in(sentence: str) -> list[str]:
    """The demands of a sentence that makes several; none where one may limit another, or there is but one."""
    bare = _INSTEAD.sub("", sentence)
    parts = _NEXT_DEMAND.split(bare)
    if bare == sentence and not 1 < len(parts) <= _MOST_PARTS:
        return []
    return [] if CJK.search(sentence) or _RELAXES.search(sentence) else parts


def _either(conditions: Sequence[Mapping[str, Any] | bool]) -> Mapping[str, Any] | bool:
    return True if True in conditions else any_of([each for each in conditions if isinstance(each, Mapping)])


def _of_one(sentence: str, known: Sequence[DeclaredTool], bound: Sequence[str]) -> CheckableDemand:
    demand = read(sentence, frozenset().union(*(tool.told for tool in known)))
    if demand.effect == "remind":
        return CheckableDemand("remind", reason="it does not say what must not be done")
    named = [each for each in demand.literals if not _STANDS_FOR.fullmatch(each.text)]
    if not named and (other := _STANDS_FOR.search(sentence)) is not None:
        return CheckableDemand("remind", reason=f"whom or what “{other.group()}” means is not known")
    if demand.unread:
        said = "”, “".join(dict.fromkeys(demand.unread))
        return CheckableDemand("remind", reason=f"“{said}” may limit it, and how is not understood")
    if "install" in demand.families and not demand.literals and (new := _NEW.search(sentence)) is not None:
        return CheckableDemand("remind", reason=f"of what is installed no call says whether it is “{new.group()}”")
    meant = _tools_meant(demand, known, bound)
    if not meant:
        return CheckableDemand("remind", reason="no tool at hand is known to do this")
    when: dict[str, Mapping[str, Any] | bool] = {}
    stops: dict[str, str] = {}
    reason = "no parameter of the tool is known to hold what it speaks of"
    for tool in meant:
        if (made := _condition(demand, tool)) is None:
            continue
        stopped, passed = trial_of(demand, tool, made)
        stopped = stopped or (tool.name if made is True else "")  # whatever is called of it
        if passed or not stopped:  # nothing is claimed that is not so
            reason = f"“{passed}” would not be stopped" if passed else "no call that it forbids could be tried"
            continue
        when[tool.name], stops[tool.name] = made, stopped
    return CheckableDemand(demand.effect, when, stops) if when else CheckableDemand("remind", reason=reason)


def _tools_meant(demand: Demand, tools: Sequence[DeclaredTool], bound: Sequence[str]) -> list[DeclaredTool]:
    families, things = frozenset(demand.families), frozenset(demand.things)
    if "commit" in families and any(each.kind == "path" for each in demand.literals):
        return [tool for tool in tools if tool.shell]  # to write a file is not to commit it
    if named := _named(demand, tools):
        return named
    if demand.content or any(each.content for each in demand.literals):
        outward = families | {"send", "post", "share", "write", "create", "change"} if families else families
        return [tool for tool in able(tools, frozenset(outward), things) if tool.writes or not tool.knows]
    # "never buy anything" does not forbid what is only near to buying: sending money, booking a flight
    said = bool(things or demand.literals or demand.bound)
    found = able(tools, families, things, near=said) if families else []
    if not found:
        named = [tool for tool in tools if tool.name in bound and not (tool.shell or tool.sql)]
        found = [tool for tool in named if tool.families & families] or (
            named if len(named) == 1 and not (families and named[0].families) else []
        )
    kinds = {each.kind for each in demand.literals}
    if kinds == {"host"} and not families & {"send", "invite"} - {"fetch"}:
        found = [tool for tool in found if tool.takes_address] or found
    if kinds == {"path"}:
        found = [tool for tool in found if tool.files] or found
    if demand.force:
        found = [tool for tool in found if tool.forces]
    found = [tool for tool in found if not (tool.shell or tool.sql)]
    return found + [tool for tool in tools if tool.shell or tool.sql]


def _named(demand: Demand, tools: Sequence[DeclaredTool]) -> list[DeclaredTool]:
    """The tools of "never use run_sql": those that are named as they are called, where nothing else is said."""
    said = {each.text for each in demand.literals}
    if not said or demand.only or demand.things or demand.bound or not demand.families & {"run"}:
        return []
    named = [tool for tool in tools if tool.name.casefold() in said]
    return named if {tool.name.casefold() for tool in named} == said else []


# ---------------------------------------------------------------- conditions


def _condition(demand: Demand, tool: DeclaredTool) -> Mapping[str, Any] | bool | None:
    if _named(demand, [tool]):
        return True
    if tool.shell:
        return shell_condition(demand)
    if tool.sql:
        return sql_condition(demand)
    if any(each.kind == "program" for each in demand.literals):
        return None
    if demand.only:
        return _elsewhere(demand, tool) if demand.literals else None
    # "never mention Sarah in e-mails to Bob" forbids neither e-mails to Bob nor to mention Sarah to others
    kinds = ([each for each in demand.literals if each.content == content] for content in (False, True))
    condition = all_of([any_of([_contains(each, demand, tool) for each in kind]) for kind in kinds if kind])
    if demand.force:
        condition = all_of([condition, any_of([forced(name) for name in tool.forces])])
    if demand.bound is None:
        return condition
    if not tool.amounts:
        return None
    keyword, value = demand.bound
    amount = listed(
        "numbers",
        {
            "type": "object",
            "required": ["name", "value"],
            "properties": {"name": {"enum": list(tool.amounts)}, "value": {"type": "number", keyword: value}},
        },
    )
    spoken = listed("values", {"enum": list(demand.currency)}) if demand.currency and tool.currency else True
    return all_of([condition, amount, spoken])


def _contains(literal: LiteralValue, demand: Demand, tool: DeclaredTool) -> dict[str, Any]:
    where = "values" if literal.content or (tool.knows and not tool.targets) else "targets"
    text = literal.text
    if literal.kind == "email":
        return listed(where, word_pattern(text, written=True) if where == "values" else {"const": text})
    if literal.kind == "host":
        bare = re.escape(text.removeprefix("www."))
        if where == "values":
            return listed("values", text_like(rf"(^|[^\w-]){bare}($|[^\w-])"))
        if demand.families & SENDING and not tool.takes_address:
            return listed(where, text_like(rf"@([^@]*\.)?{bare}$"))
        return listed(where, text_like(rf"(^|\.){bare}$"))
    if literal.kind == "path":
        return listed("targets" if tool.files else "paths", path_like(text))
    if literal.kind == "name" or (literal.kind == "word" and where == "values"):
        return listed(where, word_pattern(text, written=where == "values"))
    return listed(where, {"const": text} if literal.kind == "word" else text_like(rf"^[#@]?{re.escape(text)}$"))


def _elsewhere(demand: Demand, tool: DeclaredTool) -> Mapping[str, Any] | None:
    """A target of the same kind that is none of those named."""
    kinds = {each.kind for each in demand.literals}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    texts = [re.escape(each.text.removeprefix("www.") if kind == "host" else each.text) for each in demand.literals]
    named = "|".join(texts)
    if kind == "email":
        return listed("targets", {**text_like("@"), "not": text_like(rf"^({named})$")})
    if kind == "host" and not tool.takes_address:
        return listed("targets", {**text_like("@"), "not": text_like(rf"@([^@]*\.)?({named})$")})
    if kind == "host":
        return listed("targets", {**text_like(r"^[^\s/@]+\.[a-z][\w-]+$"), "not": text_like(rf"^([^/]*\.)?({named})$")})
    if kind in {"channel", "word", "name"} and len(tool.targets) == 1:
        return listed("targets", {"type": "string", "not": text_like(rf"^[#@]?({named})$")})
    return None
