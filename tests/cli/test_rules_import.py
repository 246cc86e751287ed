"""`toolmem rules export` and `import`: a file of rules that a team reviews, taken in once a person agrees."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from toolmem.cli import main

ROOT = Path(__file__).parents[2]
SUDO = '- tool: "bash"\n  rule: "never use sudo"\n'
PUSH = '- tool: "bash"\n  rule: "never force-push"\n'
SECONDS = 60


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def toolmem(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: str) -> Ran:
        with pytest.raises(SystemExit) as left:
            main(["rules", *words])
        return Ran(int(left.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(SUDO)
    return path


def stored(toolmem: Command) -> list[str]:
    return [rule["rule"] for rule in json.loads(toolmem("list", "--json").out)]


def test_a_script_takes_a_file_in_and_writes_the_same_again(toolmem: Command, file: Path, tmp_path: Path) -> None:
    taken = toolmem("import", str(file), "--yes")
    assert (taken.code, stored(toolmem)) == (0, ["never use sudo"])
    assert taken.out.startswith("+ bash: never use sudo (added: normal, deny: ")
    exported = tmp_path / "exported.yaml"
    assert toolmem("export", "--output", str(exported)).code == 0
    again = toolmem("import", str(exported), "--yes")
    assert (again.code, again.out) == (0, "")
    assert "nothing changes" in again.err
    assert toolmem("export").out == exported.read_text()


def test_without_a_terminal_nothing_is_taken_in_unless_a_script_says_so(toolmem: Command, file: Path) -> None:
    refused = toolmem("import", str(file))
    assert refused.code == 1
    assert "+ bash: never use sudo" in refused.out
    assert "--yes" in refused.err
    assert stored(toolmem) == []


@pytest.mark.parametrize("option", [(), ("--yes",)])
def test_an_agent_takes_no_file_in(
    toolmem: Command, file: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = toolmem("import", str(file), *option)
    assert refused.code == 1
    assert "an agent started this" in refused.err
    assert stored(toolmem) == []


def test_what_cannot_be_read_is_named_and_the_rest_is_taken_in(toolmem: Command, file: Path) -> None:
    file.write_text(f'{SUDO}\n- tool: "bash"\n  rule: [\n\n{PUSH}')
    taken = toolmem("import", str(file), "--yes")
    assert taken.code == 1
    assert f"not imported: {file}, line " in taken.err
    assert sorted(stored(toolmem)) == ["never force-push", "never use sudo"]


@pytest.mark.parametrize("text", [None, "<<<<<<< HEAD\n", "- x" * 400_000])
def test_a_file_that_is_none_is_an_error_of_usage_and_makes_no_store(
    toolmem: Command, file: Path, text: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "none.db"
    file.unlink() if text is None else file.write_text(text)
    refused = toolmem("import", str(file), "--yes", f"vector_store.default.params.path={path}")
    assert (refused.code, refused.out, path.exists()) == (2, "", False)
    assert str(file) in refused.err


def test_a_dropped_rule_holds_on_and_its_user_is_told_how_to_let_it_go(toolmem: Command, file: Path) -> None:
    toolmem("import", str(file), "--yes")
    file.write_text(PUSH)
    taken = toolmem("import", str(file), "--yes")
    assert taken.code == 0
    assert "- bash: never use sudo (dropped)" in taken.out
    assert "“never use sudo” holds on" in taken.err
    assert sorted(stored(toolmem)) == ["never force-push", "never use sudo"]


def test_recorded_calls_are_replayed_against_a_file_under_review(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = tmp_path / "calls.jsonl"
    call = {"tool_name": "bash", "input": {"command": "sudo ls"}, "output": "x", "create_time": "2026-11-22T10:00:00Z"}
    calls.write_text(json.dumps({**call, "success": True}) + "\n")
    with pytest.raises(SystemExit):
        main(["guard", "replay", "--input", str(calls), "--rules", str(file), "--json"])
    (flag,) = json.loads(capsys.readouterr().out)["flags"]
    assert flag["action"] == "deny"


# ---------------------------------------------------------------- at a terminal


def typed(folder: Path, file: Path, answer: str) -> tuple[int, bool]:
    """The import in a terminal that no agent made: exit code, and whether somebody was asked."""
    master, slave = pty.openpty()
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    run = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "toolmem", "rules", "import", str(file)],
        **dict.fromkeys(("stdin", "stdout", "stderr"), slave),
        cwd=folder,
        env={**keep, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)},
    )
    os.close(slave)
    shown, asked, end = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 0.2)
        try:
            told = os.read(master, 4096) if ready else b""
        except OSError:
            break
        shown += told
        if b"[y/N]" in shown and not asked:
            asked = True
            os.write(master, answer.encode() + b"\n")
        if ready and not told:
            break
    code = run.wait(SECONDS)
    os.close(master)
    return code, asked


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")
def test_a_person_is_asked_once_for_each_state_of_the_file(tmp_path: Path, file: Path) -> None:
    assert typed(tmp_path, file, "n") == (1, True)
    assert typed(tmp_path, file, "y") == (0, True)
    assert typed(tmp_path, file, "y") == (0, False)
    before = file.read_text()
    file.write_text(f"{SUDO}\n{PUSH}")
    assert typed(tmp_path, file, "n") == (1, True)
    file.write_text(before)
    for store in tmp_path.rglob("memory.db*"):
        store.unlink()
    assert typed(tmp_path, file, "n") == (0, False)
