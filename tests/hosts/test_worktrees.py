"""Linked worktrees of one repository share the store of its main worktree; a `.git` file of nobody is passed over."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.hook_agent import HookedAgent
from toolmem.engine import StoreFile
from toolmem.hosts.event_stores import project_store
from toolmem.hosts.worktrees import main_worktree

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git makes the worktrees")


def git(folder: Path, *arguments: str) -> None:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    names = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True, env=own)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("TOOLMEM_GUARD", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def main(home: Path) -> Path:
    """A repository with a store, and a linked worktree beside it."""
    main = home / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", "-b", "side", str(home / "side"))
    StoreFile(main / ".toolmem" / "memory.db").make().close()
    return main


def found(folder: Path, home: Path) -> Path | None:
    return project_store(str(folder), str(home))


def test_a_rule_of_one_worktree_stops_the_call_in_the_others(main: Path, home: Path) -> None:
    (home / "side" / "src").mkdir()
    HookedAgent("claude-code", home, home / "side" / "src", session="one").says("never push to main")
    for number, folder in enumerate((main, home / "side")):
        agent = HookedAgent("claude-code", home, folder, session=f"later {number}")
        assert agent.stopped(agent.asks("git push origin main"))
    with StoreFile(main / ".toolmem" / "memory.db") as store:
        assert "@shell" in str(store.prompt_rows("default", None, [])[0])
    assert not (home / "side" / ".toolmem").exists()


def test_a_worktree_inside_the_main_one_shares_its_store(main: Path, home: Path) -> None:
    git(main, "worktree", "add", "-q", "-b", "inner", str(main / ".worktrees" / "inner"))
    assert found(main / ".worktrees" / "inner", home) == main / ".toolmem" / "memory.db"


def test_a_worktrees_own_store_goes_before_that_of_the_main_one(main: Path, home: Path) -> None:
    StoreFile(home / "side" / ".toolmem" / "memory.db").make().close()
    assert found(home / "side", home) == home / "side" / ".toolmem" / "memory.db"


def test_without_a_store_in_the_main_worktree_there_is_none(main: Path, home: Path) -> None:
    (main / ".toolmem" / "memory.db").unlink()
    assert found(home / "side", home) is None
    assert not (main / ".toolmem" / "memory.db").exists()


def test_a_store_that_came_with_the_main_worktree_stays_untrusted(
    main: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    HookedAgent("claude-code", home, home / "side").says("never push to main")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "elsewhere"))  # another user's list of known stores
    agent = HookedAgent("claude-code", home, home / "side", session="later")
    assert not agent.stopped(agent.asks("git push origin main"))
    assert str(main / ".toolmem" / "memory.db") in str(agent.start())


def test_the_main_worktree_a_submodule_and_a_worktree_of_a_bare_repository_have_no_other(
    main: Path, home: Path
) -> None:
    git(home, "clone", "-q", "--bare", str(main), str(home / "bare.git"))
    git(home / "bare.git", "worktree", "add", "-q", "-b", "of-bare", str(home / "of-bare"))
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(home / "bare.git"), "part")
    for folder in (main, home / "of-bare", main / "part", home):
        assert main_worktree(str(folder)) == ""


def replaced(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def linked(path: Path, to: Path) -> None:
    path.rename(to)
    path.symlink_to(to)


NOTES = Path("main/.git/worktrees/side")
SPOILT: dict[str, Callable[[Path], object]] = {
    "no folder": lambda home: replaced(home / "side/.git", b"gitdir: /nowhere/.git/worktrees/side"),
    "a long file": lambda home: replaced(home / "side/.git", b"gitdir: " + b"x" * 100_000),
    "nothing": lambda home: replaced(home / "side/.git", b""),
    "no name": lambda home: replaced(home / "side/.git", b"gitdir:"),
    "a null byte": lambda home: replaced(home / "side/.git", b"gitdir: \0\0"),
    "not said so": lambda home: replaced(home / "side/.git", bytes(home / NOTES)),
    "a folder of others": lambda home: replaced(home / "side/.git", b"gitdir: /"),
    "a link": lambda home: linked(home / "side/.git", home / "dot-git"),
    "a pipe": lambda home: ((home / "side/.git").unlink(), os.mkfifo(home / "side/.git")),
    "a linked commondir": lambda home: linked(home / NOTES / "commondir", home / "common"),
    "another commondir": lambda home: replaced(home / NOTES / "commondir", b"../../../.."),
    "no commondir": lambda home: (home / NOTES / "commondir").unlink(),
    "another worktree": lambda home: replaced(home / NOTES / "gitdir", bytes(home / "other/.git")),
    "a repository that does not know it": lambda home: shutil.copytree(home / "side", home / "copy"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_git_file_that_is_not_sure_leaves_the_folder_on_its_own(main: Path, home: Path, how: str) -> None:
    assert found(home / "side", home) is not None
    SPOILT[how](home)
    assert found(home / ("copy" if how.startswith("a repository") else "side"), home) is None


def test_what_is_another_users_counts_for_nothing(main: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert main_worktree(str(home / "side")) == ""


def test_no_process_is_started_to_find_it(main: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "posix_spawn", None)
    monkeypatch.setattr(os, "fork", None)
    assert found(home / "side", home) == main / ".toolmem" / "memory.db"
