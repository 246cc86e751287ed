from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config.overrides import read_override, read_overrides, split_overrides
from toolmem.config.problems import dotted
from toolmem.config.scalars import write_scalar


def test_a_dotted_name_and_a_scalar():
    override = read_override("op.summary_tool_memory_op.params.recent_call_count=50")
    assert override.path == ("op", "summary_tool_memory_op", "params", "recent_call_count")
    assert override.value == 50


def test_a_part_that_holds_a_dot_stands_in_brackets():
    override = read_override("prices[qwen2.5-72b].input=0.5")
    assert override.path == ("prices", "qwen2.5-72b", "input")
    assert override.name == "prices[qwen2.5-72b].input"


def test_the_value_may_hold_anything():
    assert read_override("a.b=x=y").value == "x=y"
    assert read_override("a.b=").value == ""
    assert read_override("--a.b=1").value == 1


@pytest.mark.parametrize("item", ["a.b", "=1", ".a=1", "a.=1", "a..b=1", "a[=1", "a[]=1", "a]=1", ""])
def test_what_is_no_override_is_refused(item):
    with pytest.raises(ValueError, match=r"expected name=value|is not a dotted name"):
        read_override(item)


def test_all_bad_items_are_told_and_no_secret_among_them():
    _, problems = read_overrides(["nothing", "a.b=1", "c=1e999", "llm.default.params.api_key=.inf"])
    assert len(problems) == 3
    assert "override 'nothing': expected name=value" in problems
    assert "'llm.default.params.api_key=***'" in problems[2]
    _, (unfinished,) = read_overrides(["llm.default.params.base_url https://me:sk-hidden@host/v1"])
    assert "sk-hidden" not in unfinished


names = st.text(st.characters(exclude_characters="[]=", exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(path=st.lists(names.filter(lambda name: not name.startswith("-")), min_size=1, max_size=4), value=values)
def test_an_override_that_is_written_reads_as_the_same(path, value):
    override = read_override(f"{dotted(path)}={write_scalar(value)}")
    assert override.path == tuple(path)
    assert override.value == value
    assert override.name == dotted(path)


@given(item=st.text())
def test_any_text_is_an_override_or_refused(item):
    overrides, problems = read_overrides([item])
    assert len(overrides) + len(problems) == 1


def test_the_command_line_of_reme_is_understood():
    files, overrides, rest = split_overrides(["backend=http", "http.port=8002", "config=my.yaml"])
    assert files == ["my.yaml"]
    assert overrides == ["backend=http", "http.port=8002"]
    assert rest == []


def test_leading_dashes_are_tolerated_and_options_of_the_command_line_win():
    argv = ["run", "add_tool_call_result", "--http.port=8002", "--limit=3", "--limit", "4", "--config=a.yaml", "-"]
    assert split_overrides(argv, known=["--limit", "--request"]) == (
        ["a.yaml"],
        ["http.port=8002"],
        ["run", "add_tool_call_result", "--limit=3", "--limit", "4", "-"],
    )
    assert split_overrides(["--config=a.yaml"], known=["--config"]) == ([], [], ["--config=a.yaml"])


def test_config_counts_as_the_exact_key_alone():
    files, overrides, _ = split_overrides(["config.x=1", "configs=2", "config=b.yaml"])
    assert files == ["b.yaml"]
    assert overrides == ["config.x=1", "configs=2"]


def test_paths_and_what_follows_two_dashes_are_no_overrides():
    argv = ["dir/a=b.jsonl", "./x=1", "--", "a=1"]
    assert split_overrides(argv) == ([], [], argv)
