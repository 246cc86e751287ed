"""What is said in one agent holds in every other that works in the project, through their own hooks and payloads."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile
from toolmem.hosts.events import HookEvent
from toolmem.hosts.hook_process import answered
from toolmem.hosts.host import HOSTS, host_of

RECORDED = Path(__file__).parent / "recorded"
HERE = [name for name, module in HOSTS.items() if importlib.util.find_spec(module) is not None]
Told = dict[str, Any]


def events(name: str, kind: str) -> Iterator[tuple[Told, HookEvent]]:
    for file in sorted(RECORDED.glob(f"{name}-*/*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        event = host_of(name).read(told["payload"], told.get("environment") or {})
        if event is not None and event.kind == kind:
            yield told, event


def said_in(name: str) -> tuple[Told, str] | None:
    return next(((told, event.prompt) for told, event in events(name, "prompt") if event.prompt), None)


def run_in(name: str) -> tuple[Told, str] | None:
    """A recorded call of the agent's shell, and its command line."""
    for told, event in events(name, "before_call"):
        if "shell" in host_of(name).tools.get(event.tool, ()) and isinstance(event.arguments, dict):
            given = [each if isinstance(each, list) else [each] for each in event.arguments.values()]
            lines = [each for listed in given for each in listed if isinstance(each, str) and " " in each]
            if lines:
                return told, lines[0]
    return None


def changed(value: Any, texts: dict[str, str], repo: str) -> Any:
    if isinstance(value, dict):
        return {
            key: repo if key in {"cwd", "working_dir"} else changed(each, texts, repo) for key, each in value.items()
        }
    if isinstance(value, list):
        return [changed(each, texts, repo) for each in value]
    if isinstance(value, str):
        for old, new in texts.items():  # some agents hand over arguments as JSON text
            value = value.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]) if old != value else new
    return value


def hook(name: str, told: Told, texts: dict[str, str], repo: Path) -> str:
    payload = changed(told["payload"], texts, str(repo))
    environment = {**(told.get("environment") or {}), "CLAUDE_PROJECT_DIR": str(repo)}
    return answered([name, "--project", str(repo)], io.BytesIO(json.dumps(payload).encode()), environment).decode()


PROMPTS = {name: found for name in HERE if (found := said_in(name)) is not None}
SHELLS = {name: found for name in HERE if (found := run_in(name)) is not None}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    StoreFile(folder / ".toolmem" / "memory.db").make().close()
    return folder


def test_there_are_agents_to_try() -> None:
    assert {"claude-code", "codex"} <= PROMPTS.keys() & SHELLS.keys()


@pytest.mark.parametrize("speaker", PROMPTS)
@pytest.mark.parametrize("runner", SHELLS)
def test_what_is_said_here_is_stopped_there(speaker: str, runner: str, repo: Path) -> None:
    told, prompt = PROMPTS[speaker]
    hook(speaker, told, {prompt: "Never push to main."}, repo)

    call, line = SHELLS[runner]
    assert "Never push to main" in hook(runner, call, {line: "git push origin main"}, repo)


@pytest.mark.parametrize("runner", SHELLS)
def test_and_nothing_else_is(runner: str, repo: Path) -> None:
    told, prompt = PROMPTS["claude-code"]
    hook("claude-code", told, {prompt: "Never push to main."}, repo)

    call, line = SHELLS[runner]
    assert "Never push to main" not in hook(runner, call, {line: "git push origin feature/main-menu"}, repo)
