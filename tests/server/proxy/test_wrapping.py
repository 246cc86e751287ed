"""`toolmem mcp wrap` and `unwrap` on the configurations that hosts have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.proxy.conftest import SARAH, SCRIPTED, Lines, call, text_of
from toolmem.cli import main
from toolmem.engine.protected_paths import installed_files
from toolmem.store.known_stores import state_folder

ENTRY = '{"command": "npx", "args": ["-y", "server", "--root=/x y", "é"], "env": {"API_KEY": "very-secret-1"}}'
FILES = {
    "claude": '{\n  "mcpServers": {\n    "files": %s,\n    "other": {"command": "x"}\n  },\n  "n": 1.0\n}\n',
    "tabs and windows": '\ufeff{\r\n\t"mcpServers":{"files":\r\n\t%s\r\n\t}}',
    "no args": '{"mcpServers":{"files":{"command":"server"}}}',
    "vs code": '{\n  // my servers\n  "servers": {"files": %s, /* last */ },\n  "inputs": []\n}',
    "settings": '{"mcp": {"servers": {"files": %s}}, "editor.tabSize": 2}',
    "url": '{"servers": {"files": {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X": "very-secret-1"}}}}',
    "url alone": '{"mcpServers": {"files": {"url": "http://127.0.0.1:1/"}}}',
}
FILES = {form: text.replace("%s", ENTRY) for form, text in FILES.items()}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".mcp.json"


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["mcp", *arguments])
    assert not left.value.code


def entry_of(file: Path) -> dict:
    from toolmem.hosts.json_edits import JsonText

    whole = JsonText(file.read_text("utf-8-sig"), comments=True).root.value
    servers = whole.get("mcpServers") or whole.get("servers") or whole["mcp"]["servers"]
    return servers["files"]


@pytest.mark.parametrize("form", FILES)
def test_an_entry_is_wrapped_and_comes_back_byte_for_byte(form, file, capsys):
    before = FILES[form].encode()
    file.write_bytes(before)
    run("wrap", "files", "--file", str(file), "--dry-run")
    assert file.read_bytes() == before
    run("wrap", "files", "--file", str(file), "--shadow")
    entry = entry_of(file)
    assert entry["command"] == sys.executable
    assert entry["args"][:9] == ["-P", "-E", "-m", "toolmem", "mcp", "proxy", "--name", "files", "--shadow"]
    if form.startswith("url"):
        assert entry["args"][9:] == ["--url", "http://127.0.0.1:1/"]
        assert not {"url", "headers"} & set(entry)
    elif form != "no args":
        assert entry["args"][9:] == ["--", "npx", "-y", "server", "--root=/x y", "é"]
        assert entry["env"] == {"API_KEY": "very-secret-1"}
    wrapped = file.read_bytes()
    run("wrap", "files", "--file", str(file))
    assert file.read_bytes() == wrapped
    run("unwrap", "files", "--file", str(file))
    assert file.read_bytes() == before
    run("unwrap", "files", "--file", str(file))
    assert file.read_bytes() == before
    shown = capsys.readouterr()
    assert "very-secret-1" not in shown.out + shown.err
    assert "+" in shown.out


def test_two_entries_are_wrapped_and_unwrapped_in_any_order(file):
    before = b'{"mcpServers": {"a": {"command": "x"}, "b": {"args": [],  "command": "y"}}}'
    file.write_bytes(before)
    for step in (("wrap", "a"), ("wrap", "b"), ("unwrap", "a"), ("unwrap", "b")):
        run(*step, "--file", str(file))
    assert file.read_bytes() == before


def test_an_entry_that_was_changed_since_loses_the_proxy_alone(file):
    file.write_text(FILES["claude"])
    run("wrap", "files", "--file", str(file))
    file.write_text(file.read_text().replace('"-y"', '"--yes"').replace("very-secret-1", "another"))
    run("unwrap", "files", "--file", str(file))
    assert entry_of(file) == json.loads(ENTRY.replace('"-y"', '"--yes"').replace("very-secret-1", "another"))


def test_a_wrapped_file_is_protected_until_it_is_unwrapped(file):
    file.write_text(FILES["claude"])
    notes = state_folder() / "hook-installs"
    run("wrap", "files", "--file", str(file))
    assert str(file) in installed_files(notes)
    assert "very-secret-1" not in "".join(each.read_text() for each in notes.iterdir())
    assert all(each.stat().st_mode & 0o077 == 0 for each in notes.iterdir())
    run("unwrap", "files", "--file", str(file))
    assert str(file) not in installed_files(notes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"mcpServers": {"files": }}', "line 1, column 26"),
        ('{"mcpServers": {"mail": {"command": "x"}}}', "there are: mail"),
        ('{"mcpServers": {"files": {"disabled": true}}}', "neither a command"),
        ('{"mcpServers": {"files": {"type": "sse", "url": "http://127.0.0.1:1/sse"}}}', "SSE"),
        ("[]", "there are: none"),
    ],
)
def test_a_file_that_cannot_be_wrapped_is_refused_and_stays(file, text, told, capsys):
    file.write_text(text)
    with pytest.raises(SystemExit) as left:
        main(["mcp", "wrap", "files", "--file", str(file)])
    assert left.value.code == 2
    assert told in capsys.readouterr().err
    assert file.read_text() == text


def test_a_wrapped_entry_runs_from_any_folder_and_guards(file, tmp_path, told, store):
    told(SARAH)
    file.write_text(json.dumps({"mcpServers": {"mail": {"command": SCRIPTED[0], "args": SCRIPTED[1:]}}}))
    subprocess.run(
        [sys.executable, "-P", "-m", "toolmem", "mcp", "wrap", "mail", "--file", file.name, "--store", store.name],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    entry = json.loads(file.read_text())["mcpServers"]["mail"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "json.py").write_text("import os; os._exit(66)")
    server = entry["args"].index("--") + 1
    entry["args"].insert(server + 1, "-P")
    client = Lines([entry["command"], *entry["args"]], elsewhere)
    assert text_of(client.ask(call("send_email", {"to": "sarah@example.com"}))).startswith("toolmem: not run")
    assert client.end()[0] == 0
