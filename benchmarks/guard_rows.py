"""Labelled calls of the guard's benchmark and tests: what a rule says to each of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from toolmem.guard.call_conditions import check_condition
from toolmem.guard.decision import CheckedRule, against_rules
from toolmem.guard.view import view_of
from toolmem.light_models import ToolSchema
from toolmem.sentences.said_conditions import condition_of

HERE = Path(__file__).resolve().parent
TOOLS = [ToolSchema.read(tool) for tool in json.loads((HERE / "guard_tools.json").read_text(encoding="utf-8"))]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


@cache
def rules_of(sentence: str) -> dict[str, CheckedRule]:
    """By tool: what a sentence becomes with the tools of `guard_tools.json`."""
    made = condition_of(sentence, TOOLS)
    return {name: CheckedRule("r", sentence, made.effect, check_condition(when)) for name, when in made.when.items()}


def said_to(sentence: str, tool: str, arguments: dict[str, Any], directory: str = "") -> str:
    """What a rule says to a call: deny, ask or allow."""
    rule = rules_of(sentence).get(tool)
    if rule is None:
        return "allow"
    declared = next(each.parameters for each in TOOLS if each.name == tool)
    view = view_of(tool, arguments, declared, directory=Path(directory) if directory else None)
    found = against_rules([rule], view, "enforce")
    return found[0].action if found else "allow"
