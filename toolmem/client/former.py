"""Names that operations had on the clients of 0.1, and the batch's methods still have."""

from __future__ import annotations

from toolmem.operations import add, rules, workspaces
from toolmem.operations.operation import Method


class FormerRuleMethods:
    """`put_rule` is `rules.put` now, and so on."""

    put_rule = Method(rules.put_rule)
    get_rule = Method(rules.get_rule)
    list_rules = Method(rules.list_rules)
    delete_rule = Method(rules.delete_rule)
    rules_for_prompt = Method(rules.rules_for_prompt)
    rules_json = Method(rules.rules_json)


class FormerMethods(FormerRuleMethods):
    """`add_tool_call_results` is `add` now, `list_memories` is `memories`."""

    add_tool_call_results = Method(add.add)
    list_memories = Method(workspaces.memories)
