"""A demand that is to hold everywhere is noted in one project and stops the call in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.test_notes_by_hook import FORBIDDEN, SAID, Noting
from toolmem.engine import StoreFile

AGAIN = "and no --no-verify anywhere in this shell"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Noting:
    home, project = tmp_path / "home", tmp_path / "home" / "work" / "shop"
    for folder in (project, home / "work" / "other"):
        (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("TOOLMEM_GUARD", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return Noting("claude-code", home, project)


def stops_elsewhere(agent: Noting) -> bool:
    other = Noting("claude-code", agent.home, agent.home / "work" / "other", session="another")
    return bool(other.stopped(other.asks(FORBIDDEN)))


@pytest.mark.parametrize("where", ["here", "everywhere"])
def test_a_note_holds_in_the_project_or_in_all(agent: Noting, where: str) -> None:
    own = agent.project / ".toolmem" / "memory.db"
    StoreFile(own).make().close()
    agent.says(SAID)
    assert agent.note(where=where) == "kept"
    assert agent.users_store.exists() == (where == "everywhere")
    assert SAID in agent.stopped(agent.asks(FORBIDDEN))
    assert stops_elsewhere(agent) == (where == "everywhere")
    assert agent.rules(own) == ([] if where == "everywhere" else [SAID])
    assert agent.log == ""


def test_where_the_users_own_store_is_the_one_at_hand_a_note_replaces_there(agent: Noting) -> None:
    agent.says(SAID)
    assert agent.note() == "kept"
    agent.says(AGAIN)
    assert agent.note(quote=AGAIN, replaces=SAID, where="everywhere") == "kept"
    assert agent.printed["told"].count("It takes the place of") == 1
    assert "holds on beside it" not in agent.printed["told"]
    assert agent.rules() == [AGAIN]
