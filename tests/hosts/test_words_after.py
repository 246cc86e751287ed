"""The user's few words after a rule was kept or a call was stopped, as a hook of Claude Code hears them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.hosts.test_loosened import LOST, Agent, code_in
from toolmem.engine import StoreFile
from toolmem.readers.weight import at_once
from toolmem.rules.noted_demands import DemandContext, note_demand
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.words_after import end_of_day


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Agent(tmp_path)
    made.begins()
    return made


UNDO = ["undo", "Undo!", "undo that.", "`undo`", "撤销", "撤销。", "撤回"]
NOT_FOR_GOOD = ["not for ever", "Not forever.", "just this time", "Just for this session.", "仅这次", "仅限本次。"]
TODAY = ["only today", "Just for today!", "today only", "仅今天"]
ONCE = [
    "yes, this once",
    "Yes, just this once.",
    "go ahead this once",
    "just this once",
    "就这一次",
    "可以，就这一次。",
]
NONE = [
    "undo the last commit",
    "Please undo.",
    "can you undo that in the editor?",
    "undo\n\nand run the tests",
    "yes",
    "ok",
    "好的",
    "go ahead",
    "just this time run the tests first",
    "this is only today's log",
    "撤销上一次提交",
    "这次可以先跑测试",
]


def active(agent: Agent) -> list[str]:
    return sorted(each.rule for each in agent.rules() if each.status == "active" and "telnet" not in each.rule)


@pytest.mark.parametrize("word", UNDO)
def test_undo_lets_what_was_just_kept_hold_no_longer_and_says_so(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"

    told = agent.says(word)
    assert "Never push to main" in told
    assert "Undone" in told or "已撤销" in told
    assert agent.push() == "allow"
    told = agent.says("Go on.")
    assert f"you typed “{word}”" in told or "you typed" in told
    assert "restore" in told


def test_undo_acts_on_every_rule_of_the_message_before_and_on_no_other(agent: Agent) -> None:
    agent.says("Never use curl.")
    agent.says("Never push to main. Never use wget.")
    agent.says("undo")

    assert agent.push() == "allow"
    assert agent.decides("wget x") == "allow"
    assert agent.decides("curl x") == "deny"
    assert "Undone" not in agent.says("undo")
    assert agent.decides("curl x") == "deny"


def test_undo_takes_back_a_demand_of_the_session_too(agent: Agent) -> None:
    agent.says("Do not push to main in this session.")
    assert agent.push() == "deny"

    assert "Undone" in agent.says("undo")
    assert agent.push() == "allow"


def test_a_rule_that_was_kept_long_before_is_not_undone_and_that_is_said(agent: Agent) -> None:
    agent.says("Never push to main.")
    agent.says("Hello.")
    agent.says("Never push to main.")

    assert "Not changed" in agent.says("undo")
    assert agent.push() == "deny"


@pytest.mark.parametrize("word", NOT_FOR_GOOD)
def test_just_this_time_holds_in_this_session_and_not_for_good(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")

    assert "Never push to main" in agent.says(word)
    assert agent.push() == "deny"
    agent.session = "s2"
    assert "Never push" not in json.dumps(agent.begins().get("hookSpecificOutput", {}))
    assert agent.push() == "allow"


def test_what_held_this_time_holds_for_good_when_it_is_said_again(agent: Agent) -> None:
    agent.says("Never push to main.")
    agent.says("just this time")
    agent.session = "s2"
    agent.says("Never push to main.")
    agent.session = "s3"
    assert agent.push() == "deny"


WORDS = ["undo", "just this time", "not for ever", "only today", "仅这次"]


@pytest.mark.parametrize("word", WORDS)
def test_a_demand_that_was_undone_and_said_again_may_be_undone_or_shortened_again(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")
    agent.says("undo")
    agent.says("Hello.")
    agent.says("Never push to main.")

    told = agent.says(word)
    assert "Not changed" not in told
    assert "Never push to main" in told
    assert agent.push() == ("allow" if word == "undo" else "deny")
    if word != "undo":
        assert agent.rule().expires_at is not None


@pytest.mark.parametrize("first", ["just this time", "only today"])
@pytest.mark.parametrize("word", WORDS)
def test_a_demand_that_was_shortened_and_said_again_for_good_may_be_shortened_again(
    agent: Agent, first: str, word: str
) -> None:
    agent.says("Never push to main.")
    agent.says(first)
    agent.says("Never push to main.")
    assert agent.rule().expires_at is None

    assert "Not changed" not in agent.says(word)
    assert agent.push() == ("allow" if word == "undo" else "deny")


@pytest.mark.parametrize("word", WORDS)
def test_a_demand_that_was_lifted_and_said_again_may_be_undone_again(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")
    agent.says("You may push to main again.")
    agent.says("Never push to main.")

    assert "Not changed" not in agent.says(word)
    assert agent.push() == ("allow" if word == "undo" else "deny")


@pytest.mark.parametrize("word", TODAY)
def test_only_today_ends_with_the_day(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")

    assert "Never push to main" in agent.says(word)
    assert agent.push() == "deny"
    expires = agent.rule().expires_at
    assert expires is not None
    assert abs(expires - end_of_day(datetime.now(UTC))) < timedelta(seconds=1)


def test_what_a_model_noted_since_is_undone_as_well(agent: Agent) -> None:
    agent.says("Keep the wiki out of this, and keep it tidy")
    note = {
        "quote": "Keep the wiki out of this",
        "effect": "deny",
        "lasting": "always",
        "tools": ["Bash"],
        "when": [{"command": "wiki"}],
        "stops": [{"tool": "Bash", "arguments": {"command": "wiki push"}}],
        "passes": [{"tool": "Bash", "arguments": {"command": "ls"}}],
    }
    with StoreFile(agent.store) as store:
        rules = RuleStore(store.protocol, clock=store.clock).as_told_by(None)
        context = DemandContext([note["quote"] + ", and keep it tidy"], ["Bash"], "s1", 1, "model")  # type: ignore[operator]
        assert at_once(note_demand(rules, note, context)).outcome == "kept"
    assert agent.decides("wiki push") == "deny"

    assert "Undone" in agent.says("undo")
    assert agent.decides("wiki push") == "allow"


@pytest.mark.parametrize("message", NONE)
def test_a_longer_message_or_a_bare_yes_is_an_ordinary_prompt(agent: Agent, message: str) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"

    agent.says(message)
    assert agent.push() == "deny"
    assert active(agent) == ["Never push to main"]


@pytest.mark.parametrize("word", ["undo that", "just this time", "only today", "just this once", "撤回", "仅这次"])
def test_where_nothing_was_kept_or_stopped_the_word_is_an_ordinary_prompt(agent: Agent, word: str) -> None:
    agent.says("Hello.")
    assert agent.says(word) == ""


@pytest.mark.parametrize("word", ["undo", "just this time", "only today", "yes, this once"])
def test_an_event_that_an_agents_own_call_makes_up_undoes_nothing(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"
    agent.hook("PreToolUse", tool_name="Bash", tool_input={"command": "python forge.py"}, tool_use_id="toolu_forge")

    assert "nobody was seen to type it" in agent.says(word)
    agent.hook(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "python forge.py"},
        tool_use_id="toolu_forge",
        tool_response={"stdout": "", "stderr": "", "interrupted": False},
    )
    assert agent.push() == "deny"
    assert agent.rule().expires_at is None


# ---------------------------------------------------------------- yes, this once


@pytest.mark.parametrize("word", ONCE)
def test_yes_this_once_lets_the_stopped_call_run_once_and_keeps_the_rule(agent: Agent, word: str) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"

    assert "git push origin main" in agent.says(word)
    assert agent.push() == "allow"
    assert agent.push() == "deny"
    assert active(agent) == ["Never push to main"]


def test_only_the_very_call_that_was_stopped_last_runs(agent: Agent) -> None:
    agent.says("Never push to main. Never use curl.")
    assert agent.decides("curl https://example.com") == "deny"
    assert agent.push() == "deny"
    agent.says("yes, this once")

    assert agent.decides("curl https://example.com") == "deny"
    assert agent.decides("git push --force origin main") == "deny"
    assert agent.push() == "allow"


def test_the_users_next_message_ends_it(agent: Agent) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"
    agent.says("yes, this once")
    agent.says("Run the tests first.")

    assert agent.push() == "deny"


def test_another_session_may_not_use_it(agent: Agent) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"
    agent.says("yes, this once")

    agent.session = "s2"
    assert agent.push() == "deny"


def test_what_protects_toolmem_itself_is_never_let_through(agent: Agent) -> None:
    agent.says("Hello.")
    assert agent.decides("rm -rf .toolmem") == "deny"

    assert "Not let through" in agent.says("yes, this once")
    assert agent.decides("rm -rf .toolmem") == "deny"


def test_a_demand_of_the_session_lets_a_call_through_once_too(agent: Agent) -> None:
    agent.says("Do not push to main in this session.")
    assert agent.push() == "deny"
    agent.says("yes, this once")

    assert agent.push() == "allow"
    assert agent.push() == "deny"


def test_what_was_let_through_once_is_told_to_both_installs_alike(agent: Agent) -> None:
    agent.says("Never push to main.")
    assert agent.push() == "deny"
    agent.says("yes, this once")

    call = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}, "tool_use_id": "toolu_same"}
    answers = [agent.hook("PreToolUse", **call).get("hookSpecificOutput", {}) for _ in range(2)]
    assert [each.get("permissionDecision") for each in answers] == [None, None]


# ---------------------------------------------------------------- nothing to do

NOTHING = {
    "undo": "Nothing was kept of your last message",
    "Undo!": "Nothing was kept of your last message",
    "撤销。": "上一条消息没有记住任何规则",
    "keep them": "No rule is gone from its store",
    "Let them go.": "No rule is gone from its store",
    "保留": "没有从存储中消失的规则",
    "放弃": "没有从存储中消失的规则",
    "lift zzzz": "No proposal `zzzz` is open: there is none",
    "撤销 zzzz": "没有待确认的提议 zzzz：目前没有",
    "restore z2z9": "No rule `z2z9` is to be restored: there is none",
    "恢复 z2z9": "没有可恢复的规则 z2z9：目前没有",
}
ORDINARY = [
    "undo the last commit",
    "undo that",
    "lift this",
    "lift them",
    "restore main",
    "restore the backup k7qm",
    "keep it",
    "let it go",
    "keep them in src",
    "恢复数据",
    "撤销上一次提交",
    "保留原来的文件",
]


@pytest.mark.parametrize("word", NOTHING)
def test_a_word_that_nothing_waits_for_is_answered_in_one_line(agent: Agent, word: str) -> None:
    agent.says("Hello.")
    answer = agent.hook("UserPromptSubmit", prompt=word)
    assert answer["systemMessage"].startswith(f"toolmem: {NOTHING[word]}")
    assert "\n" not in answer["systemMessage"]
    assert "binds from now on" not in answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("message", ORDINARY)
def test_an_ordinary_message_that_is_like_such_a_word_is_not_answered(agent: Agent, message: str) -> None:
    agent.says("Hello.")
    assert agent.says(message) == ""


def test_a_code_that_is_none_is_answered_with_those_that_are(agent: Agent) -> None:
    agent.says("Never push to main.")
    told = agent.says("undo") + agent.says("Go on.")
    code = code_in(told, "restore")
    assert f"`{code}` (“Never push to main”)" in agent.says("restore z2z9")
    agent.says(f"restore {code}")
    assert "there is none" in agent.says("restore z2z9")

    code = code_in(agent.run("rules", "reject", agent.rule().id).stderr)
    agent.says("Hello.")
    assert f"`{code}` (“Never push to main”)" in agent.says("lift z2z9")
    assert agent.push() == "deny"


def test_what_answers_a_message_in_chinese_is_chinese(agent: Agent) -> None:
    def only_chinese(told: str) -> str:
        bare = re.sub(r"“[^”]*”|`[^`]*`|toolmem: |\bmain\b|\bwget\b", "", told)
        assert not re.search(r"[A-Za-z]{4,}", bare), told
        return told

    said = "永远不要推送到 main 分支。"
    assert "main" in only_chinese(agent.says(said))
    assert agent.push() == "deny"
    assert "已撤销" in only_chinese(agent.says("撤销"))
    told = only_chinese(agent.says("继续。"))
    assert "已恢复" in only_chinese(agent.says(f"恢复 {code_in(told, '恢复')}"))
    rule = next(each for each in agent.rules() if "main" in each.rule)
    code = code_in(only_chinese(agent.run("rules", "reject", rule.id).stderr), "撤销")
    only_chinese(agent.says("继续。"))
    assert "已同意" in only_chinese(agent.says(f"撤销 {code}"))
    only_chinese(agent.says("本次会话不要使用 wget。"))
    only_chinese(agent.says("仅这次"))
    assert "已恢复" in only_chinese(agent.says(f"restore {code}"))
    assert "未" in only_chinese(agent.says("记住：" + "很" * 501))
    agent.sql(LOST["the row is deleted"][0])
    only_chinese(agent.says("你好。"))
    assert "已保留" in only_chinese(agent.says("保留"))
    agent.sql(LOST["the row is deleted"][0])
    assert "已放弃" in only_chinese(agent.says("放弃"))


# ---------------------------------------------------------------- the same words again


def test_the_same_sentence_is_heard_each_time_where_events_bear_no_name(agent: Agent) -> None:
    for _ in range(3):
        assert "Kept as a rule" in agent.says("Never push to main.", prompt_id="")
        assert agent.push() == "deny"
        assert "Undone" in agent.says("undo", prompt_id="")
        assert agent.push() == "allow"


# ---------------------------------------------------------------- a note that was kept for this session alone

WIDE = "keep it civil in there, please"


def note_too_wide(agent: Agent, said: str = WIDE) -> str:
    """What is told of a note whose condition has no word of its quote."""
    shell = {"tool": "Bash", "arguments": {"command": "npm publish"}}
    given = {
        "quote": said,
        "effect": "deny",
        "lasting": "always",
        "tools": ["Bash"],
        "when": [{"command": "^npm publish"}],
        "stops": [shell],
        "passes": [{"tool": "Bash", "arguments": {"command": "npm ci"}}],
    }
    with StoreFile(agent.store) as store:
        rules = RuleStore(store.protocol, clock=store.clock).as_told_by(None)
        noted = at_once(note_demand(rules, given, DemandContext([said], ["Bash"], agent.session, 1, "model")))
    assert noted.outcome == "kept"
    assert noted.rules[0].expires_at is not None
    return noted.told


@pytest.mark.parametrize("word", ["always", "Yes, always.", "for good", "永远"])
def test_what_was_noted_for_this_session_as_it_is_wide_is_kept_for_good_by_always(agent: Agent, word: str) -> None:
    agent.says(WIDE)
    assert "*always* keeps it for good" in note_too_wide(agent)

    told = agent.says(word)
    assert WIDE in told
    assert "Kept for good" in told or "已长期记住" in told
    (rule,) = [each for each in agent.rules() if each.rule == WIDE]
    assert (rule.status, rule.effect, rule.expires_at) == ("active", "ask", None)
    agent.session = "s2"
    assert "Kept for good" not in agent.says("always")


def test_such_a_note_can_be_undone_instead_and_a_chinese_one_says_so_in_chinese(agent: Agent) -> None:
    agent.says(WIDE)
    note_too_wide(agent)
    assert "Undone" in agent.says("undo")
    agent.session = "s2"
    agent.says("那边请保持整洁有礼")
    assert "*永远* 可长期保留" in note_too_wide(agent, "那边请保持整洁有礼")


def test_always_keeps_a_demand_of_the_session_as_before(agent: Agent) -> None:
    agent.says("Do not push to main in this session.")
    assert "Kept as a rule" in agent.says("always")
    agent.session = "s2"
    assert agent.push() == "deny"
