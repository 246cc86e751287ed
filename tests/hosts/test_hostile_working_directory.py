"""An agent works in a folder that anybody may have filled: an installed hook imports nothing of it."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from toolmem.hosts.host import HOSTS, host_of
from toolmem.hosts.installed_lines import InstalledLine, installed_lines
from toolmem.hosts.installing import hook_command
from toolmem.hosts.receipts import Receipts
from toolmem.hosts.settings_files import HookPlace, plan_install, write_all

PRESENT = [name for name, module in HOSTS.items() if importlib.util.find_spec(module)]
MODULES = (
    "sitecustomize",
    "usercustomize",
    "apsw",
    "json",
    "sqlite3",
    "re",
    "os",
    "typing",
    "hashlib",
    "fcntl",
    "logging",
)
PACKAGES = ("toolmem", "encodings", "importlib", "collections", "ctypes", "jsonschema_rs")
ENVIRONMENTS = {
    "bare": {},
    "an empty part of PYTHONPATH": {"PYTHONPATH": f"{os.pathsep}/nowhere"},
    "a relative PYTHONPATH": {"PYTHONPATH": "."},
    "a PYTHONPATH that leads here": {"PYTHONPATH": "HERE"},
    "a user base here": {"PYTHONUSERBASE": "HERE", "PYTHONSTARTUP": "sitecustomize.py"},
    "a home of Python here": {"PYTHONHOME": "HERE"},
}


def lay_traps(folder: Path) -> Path:
    """Modules that leave a mark where they are imported. Answers the mark."""
    mark = folder / "imported"
    trap = f"open({str(mark)!r}, 'a').write(__name__ + ' ')\n"
    base = f"lib/python3.{sys.version_info.minor}"
    for place in (folder, folder / base, folder / base / "site-packages"):
        place.mkdir(parents=True, exist_ok=True)
        for name in MODULES:
            (place / f"{name}.py").write_text(trap)
        for name in PACKAGES:
            (place / name).mkdir(exist_ok=True)
            (place / name / "__init__.py").write_text(trap)
            (place / name / "__main__.py").write_text(trap)
    (folder / "toolmem" / "hosts").mkdir()
    for name in ("__init__", "__main__", "claude_code", "catching_up"):
        (folder / "toolmem" / "hosts" / f"{name}.py").write_text(trap)
    (folder / "pyvenv.cfg").write_text("home = .\n")
    return mark


def installed(agent: str, folder: Path, home: Path) -> InstalledLine:
    place = HookPlace(host_of(agent), "project", folder, home, {})
    command = hook_command(agent, store=None, on_error="open", config=None)
    write_all(place.host, plan_install(place, command), installs=True)
    lines = installed_lines(place)
    if not lines:
        pytest.skip(f"{place.host.title} starts no command")
    return lines[0]


def run(
    line: InstalledLine, payload: object, folder: Path, given: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: os.environ[name] for name in ("HOME", "XDG_STATE_HOME", "PATH") if name in os.environ}
    environment |= {name: value.replace("HERE", str(folder)) for name, value in given.items()}
    return subprocess.run(
        line.to_run,
        input=json.dumps(payload).encode() + b"\n",
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize("agent", PRESENT)
def test_the_installed_line_of_every_agent_imports_nothing_of_the_folder_it_runs_in(agent: str, folder: Path) -> None:
    line = installed(agent, folder, folder.parent / "home")
    mark = lay_traps(folder)
    for number, (name, given) in enumerate(ENVIRONMENTS.items()):
        session = f"s{number}"
        ran = run(line, host_of(agent).synthetic(session, str(folder)), folder, given)
        assert ran.returncode == 0, (name, ran.stderr)
        assert not mark.exists(), (name, mark.read_text())
        receipts = Receipts()
        assert [each.error for each in receipts.of_session(session)] == [""], name  # it was we who answered
        receipts.close()


def test_nor_does_what_is_started_when_a_session_ends(folder: Path) -> None:
    line = installed("claude-code", folder, folder.parent / "home")
    mark = lay_traps(folder)
    payload = {"hook_event_name": "SessionEnd", "session_id": "s", "cwd": str(folder), "reason": "other"}
    payload["transcript_path"] = ""
    ran = run(line, payload, folder, {"PYTHONPATH": "."})
    assert (ran.returncode, ran.stdout) == (0, b"")
    from toolmem.hosts.catching_up import catch_up, left_over

    receipts = Receipts()
    while left_over(receipts):
        catch_up()
    receipts.close()
    assert not mark.exists()


def test_a_server_that_is_wrapped_imports_nothing_of_the_folder_its_host_starts_it_in(
    folder: Path, run_command
) -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "result": {}}'
    server = {"command": sys.executable, "args": ["-I", "-c", f"input(); print({answer!r}, flush=True)"]}
    config = folder.parent / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"small": server}}))
    assert run_command("mcp", "wrap", "small", "--file", str(config)).code == 0
    entry = json.loads(config.read_text())["mcpServers"]["small"]
    assert "-P" in entry["args"]
    mark = lay_traps(folder)
    line = InstalledLine(config, (entry["command"], *entry["args"]))
    for name, given in ENVIRONMENTS.items():
        ran = run(line, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, folder, given)
        assert not mark.exists(), (name, mark.read_text())
        assert json.loads(ran.stdout)["id"] == 1, (name, ran.stderr)


def test_where_toolmem_is_found_through_a_variable_alone_that_variable_holds(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    bare = folder / "bare" / "bin" / "python"
    found = os.pathsep.join(each for each in sys.path if each)
    asked = "from toolmem.hosts.installing import interpreter_command; print(interpreter_command()[1:])"
    command = [bare, "-P", "-c", asked]
    ran = subprocess.run(command, env={"PYTHONPATH": found}, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['-P']"
    own = subprocess.run([sys.executable, "-P", "-c", asked], capture_output=True, text=True, check=True)
    assert own.stdout.strip() == "['-P', '-E']"


def test_the_traps_do_catch_what_imports_from_the_folder(folder: Path) -> None:
    mark = lay_traps(folder)
    subprocess.run([sys.executable, "-m", "toolmem.hosts", "claude-code"], cwd=folder, input=b"{}", check=False)
    assert mark.exists()


def test_a_line_for_a_shell_reads_a_path_with_blanks_and_quotes_as_one_word() -> None:
    words = ["/opt/my python's/bin/python", "-P", "-m", "toolmem.hosts", "codex"]
    assert InstalledLine(Path("x"), shell=shlex.join(words)).words == words
