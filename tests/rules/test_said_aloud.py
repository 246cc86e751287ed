"""A message that begins with always:, never:, remember: or 记住： is kept, or refused aloud."""

from __future__ import annotations

import pytest

from toolmem import AgentSession, ToolMem
from toolmem.engine import StoreFile, user_said
from toolmem.rules.capture.hook import Captured
from toolmem.rules.rule_store import RuleStore

TOOLS = ["Bash", "Read", "Write", "send_email"]
KEPT = {
    "never: push to main": ["Never push to main"],
    "Never: Push to main!": ["Never push to main"],
    "never: never push to main": ["never push to main"],
    "always: be kind to the interns": ["Always be kind to the interns"],
    "ALWAYS : squash": ["Always squash"],
    "remember: the deploy key lives in the vault. Never push to main.": [
        "Never push to main",
        "the deploy key lives in the vault",
    ],
    "never:\npush to main\n\nNow fix the tests.": ["Never push to main"],
    "记住：部署密钥在保险库里。": ["部署密钥在保险库里"],
    "记住: 不要推送到 main 分支": ["不要推送到 main 分支"],
}
REFUSED = {
    "remember:": "nothing follows",
    "never: ...": "nothing follows",
    "记住：": "没有可以记住的内容",
    "remember: what did we decide?": "it is a question",
    "remember: 我们决定了什么？": "这是一个问题",
    f"remember: {'one more of these words, ' * 40}": "longer than 500",
}
ORDINARY = ["Remember the milk", "I always: hm", "Do you remember: it was blue", "> never: push to main", "never mind"]


def heard(store: StoreFile, message: str) -> Captured:
    return user_said(store, message, tools=TOOLS, session_id="s1", turn=1, by_class=True)


@pytest.fixture
def store():
    with StoreFile(":memory:") as opened:
        yield opened


@pytest.mark.parametrize("message", KEPT)
def test_it_is_kept_at_least_as_a_reminder_in_the_users_words(store: StoreFile, message: str) -> None:
    captured = heard(store, message)
    assert sorted({rule.rule for rule in captured.rules}) == KEPT[message]
    assert all(rule.is_users and rule.priority == "critical" for rule in captured.rules)
    assert captured.failures == []


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_kept_is_refused_aloud(store: StoreFile, message: str) -> None:
    captured = heard(store, message)
    assert captured.rules == []
    assert REFUSED[message] in captured.failures[0]


def test_a_long_demand_is_refused_aloud_as_too_long(store: StoreFile) -> None:
    captured = heard(store, f"never: push to main {'and to other branches ' * 40}")
    assert captured.rules == []
    assert captured.too_long or captured.failures


@pytest.mark.parametrize("message", ORDINARY)
def test_other_messages_with_such_words_are_read_as_before(store: StoreFile, message: str) -> None:
    captured = heard(store, message)
    assert captured.rules == []
    assert captured.failures == []


def test_the_condition_is_that_of_the_sentence(store: StoreFile) -> None:
    (rule,) = heard(store, "never: push to main").rules
    assert (rule.tool_name, rule.effect) == ("@shell", "deny")
    assert rule.checked


def test_permission_that_is_remembered_demands_nothing(store: StoreFile) -> None:
    heard(store, "Never push to main.")
    captured = user_said(
        store, "remember: you can push to main again", tools=TOOLS, session_id="s1", turn=2, by_class=True
    )
    assert captured.rules == []
    assert [rule.rule for rule in captured.withdrawn] == ["Never push to main"]


def test_where_capture_is_switched_off_it_is_refused_aloud(store: StoreFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "false")
    captured = heard(store, "never: push to main")
    assert captured.rules == []
    assert "Not kept" in captured.notes[0]
    assert heard(store, "Never push to main.").notes == []


async def test_in_a_session_it_holds_before_the_turn_is_over(tmp_path) -> None:
    with ToolMem(tmp_path / "memory.db") as memory:
        session = await AgentSession.start(memory, tools=["send_email"])
        session.messages("never: email sarah@example.com")
        assert (await session.check("send_email", {"to": "sarah@example.com"})).stops
        await session.after_turn([{"role": "assistant", "content": "Fine."}])
        session.messages("remember: the office is closed in May")
        captured = await session.after_turn([{"role": "assistant", "content": "Fine."}])
        assert [rule.rule for rule in captured.rules] == ["the office is closed in May"]
        rules: RuleStore = session.rules
        assert len((await rules.all_rules())[0]) == 2
        await session.close()
