"""An instruction lands on the tools that it limits, by whatever names they go."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from toolmem.rules.capture.hook import ToolMemoryCaptureHook
from toolmem.rules.capture.instructions import Instruction, find_instructions
from toolmem.rules.turns import ToolUse, Turn

with Path(__file__).with_name("tools_meant.csv").open(encoding="utf-8", newline="") as file:
    PAIRS = [(row["sentence"], row["tool"]) for row in csv.DictReader(file, delimiter="|")]
CODING = ["read_file", "write_file", "delete_file", "git_commit", "git_push", "run_tests", "web_search", "shell"]


def standing(message: str, *catalogue: str) -> list[Instruction]:
    return find_instructions(message, ran=catalogue[:1], catalogue=catalogue).standing


@pytest.mark.parametrize("other", ["get_stock_quote", "translate_text", "read_inbox"])
def test_a_tool_is_meant_by_any_name_and_not_the_first_that_ran(other: str) -> None:
    assert len(PAIRS) >= 60
    found = {pair: [instruction.tool_names for instruction in standing(pair[0], other, pair[1])] for pair in PAIRS}
    wrong = {pair: names for pair, names in found.items() if names != [(pair[1],)]}
    assert len(wrong) <= 0.1 * len(found), wrong


def test_a_browser_is_what_opens_pages_where_there_is_one_and_what_reads_the_web_where_there_is_none() -> None:
    [instruction] = standing("never use the browser", "get_stock_quote", "browser_open", "web_search", "http_request")
    assert instruction.tool_names == ("browser_open",)
    [instruction] = standing(
        "never use the browser", "get_stock_quote", "web_search", "web_fetch", "http_request", "WebFetch"
    )
    assert instruction.tool_names == ("web_search", "web_fetch", "http_request", "WebFetch")


@pytest.mark.parametrize(
    ("message", "named", "also"),
    [
        ("Do not touch /etc", {"write_file", "delete_file"}, {"shell"}),
        ("Don't read ~/.ssh", {"read_file"}, {"shell"}),
        ("不要碰 /etc 目录", {"read_file", "write_file", "delete_file"}, {"shell"}),
        ("never force-push", {"git_push"}, {"shell"}),
        ("永远不要强推", {"git_push"}, {"shell"}),
        ("Do not commit secrets", {"git_commit"}, {"shell"}),
        ("always run the tests before you commit", {"git_commit"}, {"shell"}),
        ("Always run the tests before you push.", {"git_push"}, {"shell"}),
        ("提交之前必须先跑测试", {"git_commit"}, {"shell"}),
        ("Never use git_push", {"git_push"}, set()),  # an exact name is that tool alone
        ("Never run the tests on Fridays", {"run_tests"}, set()),
        ("Never search the web for names", {"web_search"}, set()),
        ("Never delete files", {"delete_file"}, set()),  # no path that a shell would reach
    ],
)
def test_an_instruction_binds_every_tool_that_it_limits(message: str, named: set[str], also: set[str]) -> None:
    [instruction] = standing(message, "get_stock_quote", *CODING)
    assert set(instruction.tool_names) == named
    assert set(instruction.also) == also
    assert set(instruction.bound) == named | also


async def test_a_rule_stands_under_each_tool_that_it_limits(rules) -> None:
    hook = ToolMemoryCaptureHook(rules, enabled=True)
    captured = await hook.after_turn(Turn("never force-push", (ToolUse("git_push"),), tools=("git_push", "shell")))
    assert {rule.tool_name for rule in captured.rules} == {"git_push", "shell"}


@pytest.mark.parametrize(
    "message",
    [
        "以后都用中文回答",
        "以后我都用苹果手机",
        "他说以后会议都安排在下午",
        "以后再说",
        "Answers must always be in German.",
        "Use metric units instead of imperial.",
        "Use the blue one instead of the red one",
        "It was above 500 euros, so they asked me.",
        "Is anything above 500 euros ok?",
        "Can you use pnpm instead of npm?",
    ],
)
def test_how_one_thing_is_done_or_an_answer_is_written_is_none(message: str) -> None:
    assert not standing(message, "send_email", "create_payment", "calendar_create_event", "get_weather", "shell")
