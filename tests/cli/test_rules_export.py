"""`toolmem rules export`: rules of the store as permissions of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolmem.app import ToolMem
from toolmem.cli import main


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "memory.db"
    with ToolMem(str(path)) as mem:
        mem.rules.put("bash", "never use sudo", priority="critical")
        mem.rules.put("send_email", "never email Sarah", priority="critical")
    return f"vector_store.default.params.path={path}"


def exported(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["rules", "export", *arguments])
    shown = capsys.readouterr()
    return int(left.value.code or 0), shown.out, shown.err


def test_permissions_are_printed_and_what_does_not_fit_is_named(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = exported(capsys, "--to", "claude-code", store)
    assert (code, json.loads(out)) == (0, {"permissions": {"deny": ["Bash(sudo:*)"]}})
    assert "send_email: never email Sarah (not sayable there: a target that names `sarah`)" in err


def test_they_are_written_to_a_file(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.json"
    code, out, _ = exported(capsys, "--to", "claude-code", "--output", str(path), store)
    assert (code, out) == (0, "")
    assert json.loads(path.read_text()) == {"permissions": {"deny": ["Bash(sudo:*)"]}}


def test_an_unknown_form_is_refused_before_a_store_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.db"
    code, _, err = exported(capsys, "--to", "opa", f"vector_store.default.params.path={path}")
    assert (code, path.exists()) == (2, False)
    assert "claude-code" in err
