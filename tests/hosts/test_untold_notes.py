"""What was kept where nothing is shown to the user is told as the next session begins, once, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.test_notes_by_hook import SAID, Noting, folder
from toolmem.hosts.host import host_of
from toolmem.providers.tokenizer import QwenTokenizer

__all__ = ["folder"]

TOLD = f"toolmem: kept since the last session: “{SAID}”"


def noting(host: str, folder: Path, session: str = "s1") -> Noting:
    return Noting(host, folder, folder / "work" / "project", session=session)


def begun(host: str, folder: Path, session: str) -> tuple[str, str]:
    """What another session tells its user and its model as it begins."""
    agent = noting(host, folder, session)
    answer = agent.start()
    return agent.speaks.notice(answer), agent.speaks.context(answer)


def test_a_note_of_a_run_without_a_terminal_is_told_by_the_next_run_in_its_context(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    agent = noting("claude-code", folder)
    agent.says(SAID)
    assert agent.note() == "kept"
    assert TOLD not in begun("claude-code", folder, "s1")[1]
    notice, context = begun("claude-code", folder, "s2")
    assert f"{TOLD}. `toolmem rules list` shows all. Tell the user so." in context
    assert TOLD not in notice
    assert TOLD not in "".join(begun("claude-code", folder, "s3"))


def test_a_session_with_a_terminal_shows_it_to_its_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    agent = noting("claude-code", folder)
    agent.says(SAID)
    agent.note()
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    notice, context = begun("claude-code", folder, "s2")
    assert TOLD in notice
    assert TOLD not in context


def test_what_was_shown_as_it_was_kept_is_not_told_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    agent = noting("claude-code", folder)
    agent.says(SAID)
    agent.note()
    assert TOLD not in "".join(begun("claude-code", folder, "s2"))


def test_what_holds_no_longer_is_not_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    agent = noting("claude-code", folder)
    agent.says(SAID)
    agent.note()
    agent.says("undo")
    assert agent.rules() == []
    assert TOLD not in "".join(begun("claude-code", folder, "s2"))


@pytest.mark.parametrize("host", ["codex", "copilot", "opencode"])
def test_an_agent_that_shows_nothing_before_a_call_tells_it_too(host: str, folder: Path) -> None:
    agent = noting(host, folder)
    agent.says(SAID)
    assert agent.note() == "kept"
    told = "".join(begun(host, folder, "s2"))
    assert (TOLD in told) is ("before_call" not in host_of(host).notices_at)


def test_many_are_one_short_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    agent = noting("claude-code", folder)
    for number in range(8):
        said = f"{SAID}, and this is the {number}th time that I have to say so in this very project of ours, by the way"
        agent.says(said)
        assert agent.note(quote=said) == "kept"
    _, context = begun("claude-code", folder, "s2")
    (line,) = (each for each in context.splitlines() if each.startswith("toolmem: kept since"))
    assert "(+5)" in line
    assert QwenTokenizer().count(line) <= 120
    assert QwenTokenizer().count(context) <= 1500
