"""Rules as DataFrames, and beside the figures of their tools."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import ToolMemoryRule
from toolmem.research.report import tools_frame
from toolmem.research.report.rules_frame import PRIORITIES, rules_beside_tools, rules_frame
from toolmem.rules.identity import namespace_of

COUNTS = [f"{priority}_rules" for priority in PRIORITIES]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_rule(tool: str, priority: str = "normal", number: int = 0, **given_fields) -> ToolMemoryRule:
    fields = {"id": f"r{number}", "tool_name": tool, "rule": f"rule {number}", "priority": priority}
    times = {"created_at": NOON, "updated_at": NOON + timedelta(minutes=number)}
    return ToolMemoryRule(**fields | times | given_fields)


def test_a_frame_holds_what_the_rules_say_in_the_order_given():
    rules = [
        a_rule("Send_Email", "high", 1, tags=["a", "b"], source="post_turn"),
        a_rule("查询天气", "critical", 2, rule="永远不要发邮件", source="user_explicit"),
    ]
    frame = rules_frame(iter(rules))
    assert list(frame["tool_name"]) == ["Send_Email", "查询天气"]
    assert list(frame["tool_key"]) == ["send_email", "查询天气"]
    assert list(frame["rule"]) == ["rule 1", "永远不要发邮件"]
    assert list(frame["tags"]) == ["a, b", ""]
    assert list(frame["source"]) == ["post_turn", "user_explicit"]
    assert list(frame["eager"]) == [True, True]
    assert list(frame["updated_at"]) == [rule.updated_at for rule in rules]
    assert list(frame.sort_values("priority")["id"]) == ["r2", "r1"]


def test_no_rules_are_a_frame_with_the_same_columns_and_types():
    empty = rules_frame([])
    assert empty.empty
    assert (empty.dtypes == rules_frame([a_rule("a")]).dtypes).all()


@given(st.text(min_size=1).filter(str.strip))
def test_rules_are_joined_by_the_name_that_their_namespace_has(name):
    assert namespace_of(name) == f"tool-{rules_frame([a_rule(name)])['tool_key'][0]}"


def test_rules_stand_beside_the_figures_of_their_tool_whatever_its_casing(build):
    tools = tools_frame(build(tools=["convertData", "search"], per_tool=6))
    rules = rules_frame([a_rule("CONVERTDATA ", "critical", 1), a_rule("convertdata", "high", 2), a_rule("other")])
    joined = rules_beside_tools(tools, rules).set_index("tool_name")
    assert list(joined.index) == [*tools["tool_name"], "other"]
    assert list(joined.loc["convertData", COUNTS]) == [1, 1, 0]
    assert list(joined.loc["search", COUNTS]) == [0, 0, 0]
    assert list(joined.loc["other", COUNTS]) == [0, 0, 1]
    assert joined.loc["convertData", "calls"] == 6
    assert joined.loc["search", "success_rate"] == tools.set_index("tool_name").loc["search", "success_rate"]
    assert pd.isna(joined.loc["other", "calls"])
    assert not pd.isna(joined.loc["search", "high"])  # the upper end of the interval, not a count of rules


def test_two_spellings_of_a_tool_show_the_same_rules():
    tools = pd.DataFrame({"tool_name": ["Search", "search"], "calls": [3, 4]}, index=[7, 9])
    joined = rules_beside_tools(tools, rules_frame([a_rule("SEARCH", "critical")]))
    assert list(joined["tool_name"]) == ["Search", "search"]
    assert list(joined["calls"]) == [3, 4]
    assert list(joined["critical_rules"]) == [1, 1]


@pytest.mark.parametrize("names", [[], ["search"]])
def test_without_rules_every_tool_has_none(names):
    joined = rules_beside_tools(pd.DataFrame({"tool_name": pd.Series(names, dtype=object)}), rules_frame([]))
    assert list(joined["tool_name"]) == names
    assert joined[COUNTS].to_numpy().sum() == 0


_SPELLINGS = st.sampled_from(["a", "A", " a", "b", "B ", "c"])


@given(
    st.lists(st.tuples(_SPELLINGS, st.sampled_from(PRIORITIES))),
    st.lists(st.sampled_from(["a", "A", "b", "d"]), unique=True),
)
def test_no_rule_is_lost_or_counted_for_another_tool(pairs, names):
    rules = [a_rule(tool, priority, number) for number, (tool, priority) in enumerate(pairs)]
    tools = pd.DataFrame({"tool_name": pd.Series(names, dtype=object)})
    joined = rules_beside_tools(tools, rules_frame(rules))
    expected = Counter((tool.strip().lower(), priority) for tool, priority in pairs)
    for row in joined.to_dict("records"):
        key = row["tool_name"].strip().lower()
        assert [row[column] for column in COUNTS] == [expected[key, priority] for priority in PRIORITIES]
    assert {name.strip().lower() for name in joined["tool_name"]} == {
        name.strip().lower() for name in [*names, *(tool for tool, _ in pairs)]
    }
