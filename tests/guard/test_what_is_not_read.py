"""What is too long or too deeply nested to be read is asked about where a rule could bind, and never passed unread."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import takes_less_than
from toolmem.guard.conversation import ConversationGuard
from toolmem.guard.decision import CheckedRule
from toolmem.guard.view import view_of
from toolmem.sentences.schemas import command, listed, path_like, word_pattern

NO_RM = CheckedRule("rm", "never use rm", "deny", command(("rm",)))
NO_SARAH = CheckedRule("sarah", "never email Sarah", "deny", listed("targets", word_pattern("sarah")))
NO_MUCH = CheckedRule(
    "much",
    "never pay more than 5,000",
    "deny",
    listed(
        "numbers",
        {
            "type": "object",
            "required": ["name", "value"],
            "properties": {"name": {"const": "amount"}, "value": {"type": "number", "exclusiveMinimum": 5000}},
        },
    ),
)
NO_SECRETS = [CheckedRule(f"p{n}", "no", "deny", listed("paths", path_like(f"/srv/secret{n}"))) for n in range(4)]
RULES = {"Bash": [NO_RM], "send_email": [NO_SARAH], "pay": [NO_MUCH], "batch": NO_SECRETS}


def said_to(tool: str, arguments: Any) -> tuple[str, str]:
    guard = ConversationGuard(RULES, protected=("/srv/app/.toolmem/memory.db",))
    decision = guard.weigh(tool, arguments, directory=Path("/srv/app")).decision
    return decision.action, decision.reason


def nested(around: Callable[[str], str], levels: int, inside: str = "rm x") -> str:
    for _ in range(levels):
        inside = around(inside)
    return inside


def in_lists(levels: int, inside: Any) -> Any:
    for _ in range(levels):
        inside = [inside]
    return inside


TOO_LONG = "ls " + "a " * 60_000 + "; rm x"
UNREAD: dict[str, tuple[str, Any]] = {
    "a command of 120,000 characters": ("Bash", {"command": TOO_LONG}),
    "a here-document before it": ("Bash", {"command": "cat > x <<E\n" + "y\n" * 60_000 + "E\nrm x"}),
    "a list of that many words": ("Bash", {"command": ["env", *["A=1"] * 40_000, "rm", "x"]}),
    "nine eval": ("Bash", {"command": nested(lambda text: f"eval {shlex.quote(text)}", 9)}),
    "twelve sh -c": ("Bash", {"command": nested(lambda text: f"sh -c {shlex.quote(text)}", 12)}),
    "ten substitutions": ("Bash", {"command": nested(lambda text: f"echo $({text})", 10)}),
    "20 wrappers and no end": ("Bash", {"command": "timeout 5 nice " * 30 + "ls"}),
    "ten find -exec": ("Bash", {"command": "find /tmp/a -exec " * 10 + "rm {} +"}),
    "5,000 lists": ("send_email", {"to": in_lists(5_000, "sarah@example.com")}),
    "5,000 lists beside the command": ("Bash", {"command": "ls", "more": in_lists(5_000, "x")}),
    "900 objects": ("pay", {"amount": json.loads('{"a":' * 900 + "9000" + "}" * 900)}),
}


@pytest.mark.parametrize(("tool", "arguments"), UNREAD.values(), ids=list(UNREAD))
def test_what_is_not_read_is_asked_about_with_the_reason(tool: str, arguments: Any) -> None:
    action, reason = said_to(tool, arguments)
    assert action == "ask"
    assert "longer than 100,000 characters" in reason or "too deeply nested" in reason
    assert takes_less_than(5, lambda: said_to(tool, arguments))


@pytest.mark.parametrize(("tool", "arguments"), UNREAD.values(), ids=list(UNREAD))
def test_where_no_rule_could_bind_it_runs(tool: str, arguments: Any) -> None:
    assert ConversationGuard({}).weigh(tool, arguments).decision.action == "allow"
    mail = CheckedRule("m", "never email Sarah", "deny", listed("emails", {"const": "sarah@example.com"}))
    assert ConversationGuard({"other": [mail]}).weigh(tool, arguments).decision.action == "allow"


@pytest.mark.parametrize(
    "amount",
    [10**5_000, 10**400, "9" * 5_000, "$" + "9" * 50, float("inf"), "9,000", "9k", "$9,000.50"],
    ids=lambda value: str(value)[:9] if not isinstance(value, int) else "a number",
)
def test_a_number_however_long_is_held_against_a_bound(amount: Any) -> None:
    assert said_to("pay", {"amount": amount})[0] == "deny"


@pytest.mark.parametrize(
    "amount",
    [-(10**5_000), 10, "4,999", "4k", "1,00", "", "a9000", "1" + "x" * 5_000],
    ids=lambda value: str(value)[:9] if not isinstance(value, int) else "a number",
)
def test_what_is_under_the_bound_or_no_number_passes(amount: Any) -> None:
    assert said_to("pay", {"amount": amount})[0] == "allow"


def test_a_long_number_elsewhere_stops_nothing() -> None:
    assert said_to("Bash", {"command": "ls", "n": 10**5_000})[0] == "allow"


MANY: dict[str, Any] = {
    "a list of paths": {"paths": [f"/srv/data/f{n}.txt" for n in range(100_000)]},
    "paths with dots": {"files": [f"data/d{n}/../f{n}.txt" for n in range(100_000)]},
    "edits": {"edits": [{"file_path": f"/srv/data/f{n}.txt"} for n in range(100_000)]},
    "texts": {"content": [f"see /srv/data/f{n}.txt" for n in range(100_000)]},
}


@pytest.mark.parametrize("arguments", MANY.values(), ids=list(MANY))
def test_100_000_paths_are_decided_on_in_2_seconds(arguments: Any) -> None:
    assert said_to("batch", arguments)[0] == "allow"
    assert takes_less_than(2, lambda: said_to("batch", arguments))
    ((name, listed_),) = arguments.items()
    last = "/srv/app/../secret2/x"
    assert said_to("batch", {name: [*listed_, {"file_path": last} if name == "edits" else last]})[0] == "deny"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
COMMANDS = st.sampled_from(["command", "cmd", "argv", "args", "program", "steps", "run", "path", "to", "amount"])


@given(
    st.dictionaries(COMMANDS | st.text(max_size=8), JSON, max_size=5), st.sampled_from(["Bash", "t", "pay", "Write"])
)
def test_the_same_call_has_the_same_view_whatever_it_holds(arguments: dict[str, Any], tool: str) -> None:
    first, second = (view_of(tool, arguments, directory=Path("/srv/app")) for _ in range(2))
    assert repr(first) == repr(second)
    json.dumps(first.fields["command_lines"])
