"""The path of a hook, a process of its own at each step of an agent: what is read and what is loaded there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMem
from toolmem.engine import StoreFile, before
from toolmem.hosts.receipts import Receipts
from toolmem.late import late_logger, late_pattern
from toolmem.stored import RawRecord

SARAH = {"to": "sarah@example.com"}


class Watched(StoreFile):
    """Notes whose records it read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.met: list[str] = []

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> list[RawRecord]:
        records = await super().list_raw(workspace, namespaces, prefix=prefix, key_prefix=key_prefix)
        self.met += [each.namespace for each in records]
        return records


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ToolMem]:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", "never email Sarah at sarah@example.com")
        mem.rules.put("search", "never search for Sarah", effect="deny", when=_writes("sarah@example.com"))
        mem.rules.put("__unscoped__", "never email kim@example.com", effect="deny", when=_writes("kim@example.com"))
        yield mem


def _writes(text: str) -> dict[str, Any]:
    held = {"type": "array", "contains": {"const": text}}
    return {"type": "object", "required": ["values"], "properties": {"values": held}}


def stops(store: StoreFile, tool: str, arguments: Any) -> bool:
    return before(store, {"tool_name": tool, "input": arguments}).stops


def test_a_call_reads_the_rules_of_its_tool_and_of_all_tools_once(memory: ToolMem, tmp_path: Path) -> None:
    with Watched(tmp_path / "memory.db") as store:
        assert stops(store, "Send_Email", SARAH)
        assert stops(store, "send_email", {"to": "kim@example.com"})
        assert sorted(store.met) == ["tool-__unscoped__", "tool-send_email"]
        assert stops(store, "search", {"q": "sarah@example.com"})
        assert stops(store, "send_email", SARAH)
        assert store.met.count("tool-send_email") == 1


def test_a_rule_binds_and_a_withdrawn_one_does_not_at_the_next_call(memory: ToolMem, tmp_path: Path) -> None:
    with StoreFile(tmp_path / "memory.db") as store:
        assert stops(store, "send_email", SARAH)
        assert not stops(store, "search", {"q": "rain"})
        rain = memory.rules.put("__unscoped__", "never ask for rain", effect="deny", when=_writes("rain"))
        assert stops(store, "search", {"q": "rain"})
        assert stops(store, "send_email", {"to": "rain"})
        memory.rules.delete("__unscoped__", rain.id)
        assert not stops(store, "search", {"q": "rain"})
        assert not stops(store, "send_email", {"to": "rain"})
        assert stops(store, "send_email", SARAH)


# What a hook's process does not load: what takes long there, and what no call needs before which nothing stands.
HEAVY = {"pydantic", "numpy", "yaml", "typer", "httpx", "asyncio", "logging", "dataclasses", "inspect", "jsonschema_rs"}
NEEDLESS = {"toolmem.models", "toolmem.protocols", "toolmem.rules.capture", "toolmem.rules.drafts", "toolmem.judge"}
EVENTS: dict[str, dict[str, Any]] = {
    "PreToolUse": {"tool_name": "Read", "tool_input": {"file_path": "/tmp/x"}, "tool_use_id": "toolu_1"},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "toolu_2",
        "tool_response": {"stdout": "a", "stderr": "", "interrupted": False},
    },
    "UserPromptSubmit": {"prompt": "Never run sudo. 永远不要删除文件.", "prompt_id": "p1"},
}
KINDS = {"PreToolUse": "before_call", "PostToolUse": "after_call", "UserPromptSubmit": "prompt"}


@pytest.mark.parametrize("event", EVENTS)
def test_a_hooks_process_loads_neither_what_takes_long_nor_what_its_event_does_not_need(
    tmp_path: Path, event: str
) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("Bash", "never push to main")
    given = {"session_id": "s1", "transcript_path": "", "cwd": str(tmp_path), "hook_event_name": event, **EVENTS[event]}
    run = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "toolmem.hosts", "claude-code", "--store", "memory.db"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert "toolmem.hosts.acting" in loaded
    tried = {"jsonschema_rs"} if event == "UserPromptSubmit" else set()  # what a demand stops is tried on a call
    assert HEAVY & loaded == tried
    assert event == "UserPromptSubmit" or NEEDLESS & loaded == set()
    assert not list(tmp_path.rglob("hooks.log"))
    (log,) = tmp_path.rglob("hooks.db-wal")  # not brought home at the end, which waits for the disk
    assert log.stat().st_size > 0
    assert [each.event for each in Receipts(log.with_name("hooks.db")).of_session("s1")] == [KINDS[event]]


def test_a_late_pattern_is_the_compiled_one_and_a_late_logger_the_named_one(caplog: pytest.LogCaptureFixture) -> None:
    word = late_pattern("(?P<w>[a-z]+)x", re.IGNORECASE)
    assert word.search("12 ABx").group("w") == "AB"
    assert [each.group() for each in word.finditer("ax by cx")] == ["ax", "cx"]
    assert word.sub("-", "ax by cx") == "- by -"
    assert (word.pattern, word.flags & re.IGNORECASE) == ("(?P<w>[a-z]+)x", re.IGNORECASE)
    late_logger("toolmem.late").warning("said %d", 1)
    assert [(each.name, each.message) for each in caplog.records] == [("toolmem.late", "said 1")]
    with pytest.raises(AttributeError):
        word.no_such_method()
