"""`toolmem rules`, through the entry point."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from toolmem import ToolMemApp
from toolmem.cli import main

SARAH = "never email Sarah at sarah@example.com"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def toolmem(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def run(*arguments: str) -> Ran:
        code = 0
        try:
            main(["rules", *arguments])
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 1
        shown = capsys.readouterr()
        return Ran(code, shown.out, shown.err)

    return run


@pytest.fixture
def one_rule(toolmem) -> str:
    """The id of a rule that is there."""
    added = toolmem("add", "send_email", SARAH, "--priority", "critical", "--json")
    assert added.code == 0, added.err
    return json.loads(added.out)["id"]


def lines(*values: object) -> str:
    return "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values)


# ---------------------------------------------------------------- rules


def test_a_rule_is_added_listed_shown_and_deleted(toolmem, one_rule):
    (listed,) = json.loads(toolmem("list", "--json").out)
    assert (listed["id"], listed["rule"], listed["priority"]) == (one_rule, SARAH, "critical")
    assert listed["source"] == "user_explicit"
    table = toolmem("list").out
    assert SARAH in table
    assert one_rule[:8] in table
    assert SARAH in toolmem("show", one_rule[:8]).out
    assert json.loads(toolmem("show", "SEND_EMAIL", "--json").out) == [listed]
    deleted = toolmem("delete", one_rule)
    assert (deleted.code, deleted.out) == (0, "")
    assert SARAH in deleted.err
    assert json.loads(toolmem("list", "--json").out) == []


def test_an_empty_list_is_no_failure(toolmem):
    shown = toolmem("list")
    assert (shown.code, shown.out) == (0, "")
    assert "no rules" in shown.err
    assert toolmem("list", "nosuch").code == 0


def test_the_prompt_is_the_block_alone(toolmem, one_rule):
    shown = toolmem("prompt")
    assert shown.code == 0
    assert shown.out.startswith("## Tool-scoped rules\n")
    assert shown.out.endswith(f"### `send_email`\n- **[critical]** {SARAH}\n")
    assert toolmem("prompt", "--tools", "calendar").out == ""
    assert toolmem("prompt", "language=zh").out.startswith("## 工具作用域规则")
    body = json.loads(toolmem("prompt", "--json", "--tools", "Send_Email").out)
    assert body["rendered"].count("### `Send_Email`") == 1
    assert [rule["id"] for rule in body["rules"]] == [one_rule]


def test_rules_of_other_tools_are_not_denied(toolmem, one_rule):
    for tool in ("calendar", "shell"):
        toolmem("add", tool, "ask first", "--priority", "high")
    toolmem("add", "notes", "be brief")
    told = toolmem("prompt", "--tools", "web").err
    assert "no critical or high rules for web; it has 3 for calendar, send_email, shell" in told
    assert "has no critical or high rules\n" in toolmem("prompt", "--workspace", "other").err


def test_an_id_as_it_is_listed_changes_the_rule_it_begins(toolmem, one_rule):
    changed = json.loads(toolmem("add", "send_email", "never email Sarah", "--id", one_rule[:8], "--json").out)
    assert (changed["id"], changed["priority"]) == (one_rule, "critical")
    assert len(json.loads(toolmem("list", "--json").out)) == 1
    other = toolmem("add", "shell", "never email Sarah", "--id", one_rule[:8])
    assert other.code == 2
    assert "belongs to tool 'send_email'" in other.err


def test_what_an_agent_proposed_is_listed_approved_and_rejected(toolmem, tmp_path):
    waiting = [propose(f"rule {number}") for number in range(2)]
    shown = toolmem("list")
    assert (shown.code, shown.out) == (0, "")
    assert "2 rules wait for you" in shown.err
    assert "rule 0" not in toolmem("prompt").out
    every = json.loads(toolmem("list", "--all", "--json").out)
    assert {(rule["id"], rule["status"], rule["said"]["by"]) for rule in every} == {
        (each, "proposed", "agent") for each in waiting
    }
    assert "proposed" in toolmem("list", "--all", "shell").out
    assert "proposed" in toolmem("show", waiting[0][:8]).out
    approved = toolmem("approve", waiting[0][:8])
    assert (approved.code, approved.out) == (0, "")
    assert "rule 0" in approved.err
    assert "- **[critical]** rule 0" in toolmem("prompt").out
    assert toolmem("reject", waiting[1]).code == 0
    statuses = {rule["rule"]: rule["status"] for rule in json.loads(toolmem("list", "--all", "--json").out)}
    assert statuses == {"rule 0": "active", "rule 1": "withdrawn"}
    assert [rule["rule"] for rule in json.loads(toolmem("list", "--json").out)] == ["rule 0"]
    assert toolmem("approve", waiting[1]).code == 0
    assert toolmem("delete", waiting[1][:8]).code == 0
    assert toolmem("approve", "ffffffff").code == 1


def propose(text: str) -> str:
    """The id of a critical rule that an agent puts into the default store."""

    async def put() -> str:
        async with ToolMemApp() as app:
            agents = (await app.rule_store()).for_agent()
            return (await agents.put_rule("shell", text, priority="critical")).id

    return asyncio.run(put())


def test_a_change_by_id_keeps_the_rest(toolmem, one_rule):
    changed = toolmem("add", "send_email", "never email Sarah", "--id", one_rule, "--tag", "mail", "--json")
    rule = json.loads(changed.out)
    assert (rule["id"], rule["priority"], rule["source"], rule["tags"]) == (
        one_rule,
        "critical",
        "user_explicit",
        ["mail"],
    )


def test_workspaces_are_apart(toolmem, one_rule):
    assert json.loads(toolmem("list", "--workspace", "other", "--json").out) == []
    assert toolmem("delete", one_rule, "--workspace", "other").code == 1


def test_the_store_may_be_chosen(toolmem, tmp_path):
    override = "vector_store.default.params.path=elsewhere.db"
    assert toolmem("add", "t", "one", override).code == 0
    assert (tmp_path / "elsewhere.db").is_file()
    rule_id = json.loads(toolmem("list", override, "--json").out)[0]["id"]
    assert toolmem("delete", rule_id, override).code == 0
    assert not (tmp_path / ".toolmem").exists()


@pytest.mark.parametrize("command", ["show", "delete"])
def test_an_id_that_is_not_there_exits_1(toolmem, one_rule, command):
    ran = toolmem(command, "ffffffff")
    assert ran.code == 1
    assert "ffffffff" in ran.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "t", " "], "rule is required"),
        (["add", "t", "x" * 2001], "2,000"),
        (["add", "t", "one", "--priority", "critcal"], "did you mean 'critical'"),
        (["add", "t", "one", "--workspace", "../x"], "workspace_id"),
        (["delete", "send_email"], "is a tool"),
        (["show", "a=b"], "id"),
        (["capture"], "--turns"),
        (["capture", "--turns", "a", "--conversations", "b"], "--turns"),
        (["capture", "--turns", "nosuch.jsonl"], "nosuch.jsonl"),
        (["list", "rules.max_in_prompt=0"], "max_in_prompt"),
    ],
)
def test_a_bad_call_is_refused(toolmem, one_rule, arguments, says):
    ran = toolmem(*arguments)
    assert ran.code == 2
    assert says in ran.err
    assert ran.out == ""


def test_an_ambiguous_beginning_of_an_id_is_refused(toolmem):
    for n in range(2):
        toolmem("add", f"t{n}", f"rule {n}", "--id", f"same-{n}")
    ran = toolmem("delete", "same")
    assert ran.code == 2
    assert "2 rules" in ran.err


# ---------------------------------------------------------------- capture

TURNS = [
    {"user_message": SARAH, "tool_calls": [{"name": "send_email", "success": True}], "label": "passed over"},
    {"user_message": "don't send it yet", "tool_calls": [{"name": "send_email"}], "tools": ["send_email", "calendar"]},
    {"user_message": "What is the weather?", "tool_calls": []},
    {
        "user_message": "go on",
        "tool_calls": [{"name": "fetch", "success": False, "output_summary": "timed out"}] * 3,
    },
    {
        "user_message": "永远不要给 sarah@example.com 的 Sarah 发邮件",
        "tools": [{"name": "send_email", "inputSchema": {}}],
    },
]


@pytest.fixture
def turns(tmp_path: Path) -> str:
    (tmp_path / "turns.jsonl").write_text(lines(*TURNS), encoding="utf-8")
    return "turns.jsonl"


def test_capture_prints_one_line_per_turn_and_keeps_nothing(toolmem, turns, tmp_path):
    ran = toolmem("capture", "--turns", turns, "--json")
    assert ran.code == 0, ran.err
    results = [json.loads(line) for line in ran.out.splitlines()]
    edict = {"priority": "critical", "source": "user_explicit", "tags": ["user-edict"]}
    (sarah,) = results[0]["rules"]
    assert sarah.pop("when")["anyOf"]
    assert sarah == {
        "tool_name": "send_email",
        "rule": SARAH,
        **edict,
        "status": "active",
        "effect": "deny",
        "unchecked": "",
        "said": {"by": "user", "sentence": SARAH, "session": "", "turn": None, "time": None}
        | {"noted_by": "", "understood": ""},
    }
    assert {name: results[0][name] for name in ("turn", "session", "too_long")} == {
        "turn": 0,
        "session": [],
        "too_long": 0,
    }
    assert results[1]["rules"] == []
    assert results[1]["session"] == [{"tool_name": "send_email", "rule": "don't send it yet"}]
    assert results[2] == {"turn": 2, "rules": [], "session": [], "too_long": 0}
    (failing,) = results[3]["rules"]
    assert (failing["tool_name"], failing["priority"], failing["tags"]) == ("fetch", "normal", ["repeated-failure"])
    assert failing["rule"].startswith("Tool failed 3 times in one turn (timeout)")
    (chinese,) = results[4]["rules"]
    assert (chinese["tool_name"], chinese["rule"], chinese["effect"]) == (
        "send_email",
        TURNS[4]["user_message"],
        "deny",
    )
    assert (failing["effect"], failing["when"], failing["said"]["by"]) == ("remind", None, "program")
    assert not (tmp_path / ".toolmem").exists()


def test_capture_applied_keeps_the_rules_and_a_second_time_adds_nothing(toolmem, turns):
    for _ in range(2):
        assert toolmem("capture", "--turns", turns, "--apply").code == 0
        assert len(json.loads(toolmem("list", "--json").out)) == 3


LIFTED = [
    {"user_message": "Never email Sarah.", "tools": ["send_email"], "session_id": "one"},
    {"user_message": "Never push to main.", "tools": ["git_push"], "session_id": "one"},
    {"user_message": "Ask me before you push to main.", "tools": ["git_push"], "session_id": "one"},
    {"user_message": "You may email Sarah again.", "tools": ["send_email"], "session_id": "one"},
    {"user_message": "Never deploy to production.", "tools": ["deploy"], "session_id": "one"},
    {"user_message": "You may deploy to production this once.", "tools": ["deploy"], "session_id": "one"},
]


@pytest.mark.parametrize("apply", [(), ("--apply",)])
def test_capture_tells_what_a_turn_takes_back_of_the_turns_before(toolmem, tmp_path, apply):
    (tmp_path / "lifted.jsonl").write_text(lines(*LIFTED), encoding="utf-8")
    ran = toolmem("capture", "--turns", "lifted.jsonl", "--json", *apply)
    results = [json.loads(line) for line in ran.out.splitlines()]
    assert [rule["rule"] for rule in results[2]["superseded"]] == ["Never push to main"]
    assert results[2]["superseded"][0]["superseded_by"]
    (gone,) = results[3]["withdrawn"]
    assert (gone["rule"], gone["status"]) == ("Never email Sarah", "withdrawn")
    assert "Never deploy to production" in results[5]["notes"][0]
    held = [] if not apply else [rule["rule"] for rule in json.loads(toolmem("list", "--json").out)]
    assert held == (["Never deploy to production", "Ask me before you push to main"] if apply else [])


def test_capture_shows_people_what_is_taken_back(toolmem, tmp_path):
    (tmp_path / "lifted.jsonl").write_text(lines(*LIFTED), encoding="utf-8")
    ran = toolmem("capture", "--turns", "lifted.jsonl")
    assert "Would be taken back" in ran.out
    assert "2 rules taken back" in ran.err


def test_a_deleted_rule_is_not_captured_again_from_the_same_turn(toolmem, tmp_path):
    turns, said = "said.jsonl", {"user_message": SARAH, "tools": ["send_email"], "session_id": "s1"}
    (tmp_path / turns).write_text(lines(said), encoding="utf-8")
    toolmem("capture", "--turns", turns, "--apply")
    for rule in json.loads(toolmem("list", "--json").out):
        toolmem("delete", rule["id"])
    ran = toolmem("capture", "--turns", turns, "--apply", "--json")
    results = [json.loads(line) for line in ran.out.splitlines()]
    assert all(result["rules"] == [] for result in results)
    assert results[0]["deleted"] == [{"tool_name": "send_email", "rule": SARAH}]
    assert json.loads(toolmem("list", "--json").out) == []


def test_applied_the_rules_are_told_as_they_are_stored(toolmem, turns):
    toolmem("add", "send_email", SARAH)
    stored = json.loads(toolmem("list", "--json").out)[0]
    ran = toolmem("capture", "--turns", turns, "--apply", "--json")
    (told,) = json.loads(ran.out.splitlines()[0])["rules"]
    assert (told["effect"], told["when"]) == (stored["effect"], stored["when"])
    assert told["said"]["time"]


def test_the_table_says_which_rules_are_checked_and_why_the_others_only_remind(toolmem, tmp_path):
    said = {"user_message": "Never email Sarah. Never deploy on weekends.", "tools": ["send_email", "deploy"]}
    (tmp_path / "turns.jsonl").write_text(lines(said), encoding="utf-8")
    shown = toolmem("capture", "--turns", "turns.jsonl").out
    assert "checked: deny" in shown
    assert "only reminded: 'weekends'" in " ".join(shown.split())


def test_capture_shows_a_table_to_people(toolmem, turns):
    ran = toolmem("capture", "--turns", turns)
    assert SARAH in ran.out
    assert "don't send it yet" in ran.out
    assert "3 rules would be kept" in ran.err
    assert "don't send it yet: kept for this session; say 'always' to keep it" in ran.err


def test_a_bad_line_is_named_and_the_others_count(toolmem, tmp_path):
    text = lines(TURNS[0]).encode() + b"{torn\n\xff\xfe\n" + lines({"user_mesage": "x"}, TURNS[0]).encode()
    (tmp_path / "turns.jsonl.gz").write_bytes(gzip.compress(text))
    ran = toolmem("capture", "--turns", "turns.jsonl.gz", "--json")
    assert ran.code == 1
    results = [json.loads(line) for line in ran.out.splitlines()]
    assert [bool(result["rules"]) for result in results] == [True, False, False, False, True]
    assert [result["turn"] for result in results] == [0, 1, 2, 3, 4]
    for place in ("line 2", "line 3", "line 4"):
        assert place in ran.err


def test_a_file_without_one_turn_is_refused(toolmem, tmp_path):
    for content in ("", "nope\n", "{}\n"):
        (tmp_path / "turns.jsonl").write_text(content)
        ran = toolmem("capture", "--turns", "turns.jsonl", "--json")
        assert (ran.code, ran.out) == (2, "")
        assert "not one turn" in ran.err


def test_a_capture_that_is_switched_off_is_not_applied(toolmem, turns, monkeypatch):
    monkeypatch.setenv("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "0")
    ran = toolmem("capture", "--turns", turns, "--apply")
    assert ran.code == 2
    assert "switched off" in ran.err
    assert json.loads(toolmem("list", "--json").out) == []


def test_conversations_are_cut_into_turns_and_their_failures_read_from_the_output(toolmem, tmp_path):
    def call(n: int) -> list[dict]:
        return [
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "function": {"name": "fetch", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "Error: connection timed out"},
        ]

    said = [{"role": "user", "content": SARAH}, {"role": "assistant", "content": "ok"}]
    conversation = {
        "messages": [*said, {"role": "user", "content": "fetch it"}, *call(1), *call(2)],
        "tools": [{"type": "function", "function": {"name": name}} for name in ("fetch", "send_email")],
    }
    (tmp_path / "talks.jsonl").write_text(lines(conversation, {"no": "messages"}, {"messages": said}))
    ran = toolmem("capture", "--conversations", "talks.jsonl", "--json")
    assert ran.code == 1
    first, second, bad, last = [json.loads(line) for line in ran.out.splitlines()]
    assert [each["turn"] for each in (first, second, bad, last)] == [0, 1, 2, 3]
    assert [each["conversation"] for each in (first, second, bad, last)] == [0, 0, 1, 2]
    assert [(rule["tool_name"], rule["rule"]) for rule in first["rules"]] == [("send_email", SARAH)]
    assert [rule["tool_name"] for rule in second["rules"]] == ["fetch"]
    assert "line 2" in bad["error"]
    assert [rule["tool_name"] for rule in last["rules"]] == ["__unscoped__"]


# ---------------------------------------------------------------- what a text does to a terminal

HOSTILE = "never \x1b[2J\x1b]0;owned\x07 delete \u202efiles\u202c \x9b31m now"
UNSEEN = ("\x1b", "\x07", "\x9b", "\u202e", "\u202c", "\u200b")


def test_no_rule_acts_on_the_terminal_or_turns_its_lines_round(toolmem):
    added = toolmem("add", "send_email\u200b", HOSTILE, "--priority", "critical")
    shown = [added, toolmem("list"), toolmem("show", "send_email\u200b"), toolmem("prompt"), toolmem("list", "--json")]
    shown.append(toolmem("show", "\x1b[31mnothing\u202e"))
    gone = toolmem("delete", json.loads(toolmem("list", "--json").out)[0]["id"])
    for ran in [*shown, gone]:
        assert not any(mark in ran.out + ran.err for mark in UNSEEN)
    assert "\\u202e" in shown[1].out
    assert json.loads(shown[4].out)[0]["rule"] == HOSTILE


def test_tools_that_look_alike_are_told_apart_in_lists(toolmem):
    for tool in ("send_email", "send_email\u200b", "s\u0435nd_email"):
        toolmem("add", tool, f"a rule of {len(tool)}")
    listed = toolmem("list").out
    assert "send_email\\u200b" in listed
    assert "s\\u0435nd_email" in listed


def test_emoji_and_scripts_that_need_joiners_are_listed_as_they_are(toolmem):
    kept = "بگو «می‌خواهم» 👩‍🚀 ❤️ 查询天气"
    toolmem("add", "发送邮件", kept)
    listed = toolmem("show", "发送邮件").out
    assert kept in listed
    assert "发送邮件" in listed


def test_an_unknown_id_names_the_list_of_the_workspace_that_was_asked(toolmem):
    missed = toolmem("show", "ffffffff", "--workspace", "team")
    assert missed.code == 1
    assert "`toolmem rules list --all --workspace team`" in missed.err
