"""What stands beside each tool of a wrapped server: its rules, and how they are to be kept once."""

from datetime import UTC, datetime

from toolmem.models import ToolMemoryRule, ToolSchema
from toolmem.server.proxy.tool_texts import known_texts

AT = datetime(2026, 1, 1, tzinfo=UTC)


def rule(tool: str, text: str) -> ToolMemoryRule:
    return ToolMemoryRule(id=text, tool_name=tool, rule=text, priority="critical", created_at=AT, updated_at=AT)


def test_how_rules_are_to_be_kept_stands_once() -> None:
    tools = [ToolSchema(name=name) for name in ("list", "send", "delete")]
    rules = [rule("send", "never email Sarah"), rule("delete", "ask me before you delete")]
    known = known_texts(tools, rules, [], (), "")
    assert set(known) == {"send", "delete"}
    text = "\n".join(known.values())
    assert text.count("hard constraints") == 1
    assert "hard constraints" in known["send"]
    assert "The user's rules for this tool" in known["delete"]
    assert "- **[critical]** ask me before you delete" in known["delete"]
    assert "memory_recall" not in text
