"""`toolmem mcp wrap` and `unwrap`: the proxy in a host's settings."""

import json

import pytest
from command_line import run as run_command

FILES = {
    "claude": '{\r\n\t"mcpServers": {\r\n\t\t"files": {"command": "srv", "args": ["-y", "."],'
    '\r\n\t\t\t"env": {"TOKEN": "secret"} }\r\n\t}\r\n}\r\n',
    "vs code": '{"servers": {"other": {"url": "http://x"}, /* mine */'
    ' "files": {"command": "srv",},}}',
    "settings": '\ufeff{"mcp": {"servers": {"files":\n {"command":"srv","args":[]}\n}}, "x": 1}',
}


@pytest.fixture
def toolmem(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words, code=0):
        done = run_command(tmp_path, "mcp", *words)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.parametrize("name", FILES)
def test_an_entry_is_wrapped_and_every_byte_comes_back(toolmem, tmp_path, name):
    path = tmp_path / "mcp.json"
    path.write_bytes(before := FILES[name].encode())
    dry = toolmem("wrap", "files", "--file", "mcp.json", "--dry-run")
    assert "would start" in dry and "secret" not in dry and path.read_bytes() == before
    assert "secret" not in toolmem("wrap", "files", "--file", "mcp.json", "--shadow")
    wrapped = path.read_text(encoding="utf-8-sig")
    assert '"proxy", "--name", "files", "--shadow", "--", "srv"' in " ".join(wrapped.split())
    again = toolmem("wrap", "files", "--file", "mcp.json", code=2)
    assert "stands before it already" in again
    toolmem("unwrap", "files", "--file", "mcp.json")
    assert path.read_bytes() == before
    assert "change it by hand" in toolmem("unwrap", "files", "--file", "mcp.json", code=2)
    for note in (tmp_path / "state").rglob("*.json"):
        assert note.stat().st_mode & 0o077 == 0


def test_an_address_becomes_a_command_and_its_headers_stay_out_of_sight(toolmem, tmp_path):
    entry = {"type": "http", "url": "https://example.com/mcp", "headers": {"Key": "secret"}}
    path = tmp_path / "mcp.json"
    path.write_text(before := json.dumps({"mcpServers": {"wiki": entry}}))
    told = toolmem("wrap", "wiki", "--file", "mcp.json", "--store", "m.db")
    assert "secret" not in told
    made = json.loads(path.read_text())["mcpServers"]["wiki"]
    assert made["args"][-4:] == ["--store", str(tmp_path / "m.db"), "--url", entry["url"]]
    assert made["type"] == "stdio" and "url" not in made and "headers" not in made
    assert json.loads(made["env"]["TOOLMEM_MCP_HEADERS"]) == {"Key": "secret"}
    toolmem("unwrap", "wiki", "--file", "mcp.json")
    assert path.read_text() == before


def test_what_cannot_be_wrapped_is_told_and_nothing_changes(toolmem, tmp_path):
    path = tmp_path / "mcp.json"
    for text, told in (
        ('{"mcpServers": {"a": {"command": "x"}}}', "there are: a"),
        ('{"mcpServers": {"files": {"x": 1}}}', "neither a command with args nor a url"),
        ('{"mcpServers": {"files": {"type": "sse", "url": "https://x/sse"}}}', "sse is not spoken"),
        ('{"mcpServers": ', "Nothing was changed"),
        ("[]", "expected an object"),
    ):
        path.write_text(text)
        assert told in toolmem("wrap", "files", "--file", "mcp.json", code=2)
        assert path.read_text() == text


def test_an_entry_that_was_changed_since_is_left_to_the_user(toolmem, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"files": {"command": "srv"}}}')
    toolmem("wrap", "files", "--file", "mcp.json")
    path.write_text(changed := path.read_text().replace('"srv"', '"other"'))
    assert "change it by hand" in toolmem("unwrap", "files", "--file", "mcp.json", code=2)
    assert path.read_text() == changed


def test_an_entry_that_was_never_wrapped_is_told(toolmem, tmp_path):
    text = '{"mcpServers": {"files": {"command": "srv", "args": null}}}'
    (tmp_path / "mcp.json").write_text(text)
    assert "change it by hand" in toolmem("unwrap", "files", "--file", "mcp.json", code=2)
