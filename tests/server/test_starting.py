"""What a start waits for, and what it does not."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from toolmem.server import loading

LATER = (
    "numpy",
    "pandas",
    "toolmem.rules.capture.instructions",
    "toolmem.guidance.counted.card_lines",
    "toolmem.store.sqlite.vector_index",
)

START = """
import asyncio, sys
from toolmem.app import ToolMemApp
from toolmem.server.mcp import McpService

async def start():
    async with McpService(ToolMemApp(overrides=[f"vector_store.default.params.path={sys.argv[1]}"])):
        print(*sys.modules, sep="\\n")

asyncio.run(start())
"""


def test_a_server_starts_without_what_only_some_requests_need(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, str(tmp_path / "memory.db")]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert "toolmem.store.sqlite.sqlite_store" in loaded
    assert [name for name in LATER if name in loaded] == []


def import_what_is_missing() -> None:
    assert not gc.isenabled()
    importlib.import_module("toolmem.nothing_of_that_name")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was_after_loading_even_where_that_failed(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(ModuleNotFoundError), loading():
            import_what_is_missing()
        assert gc.isenabled() is enabled
    finally:
        gc.unfreeze()
        gc.enable() if before else gc.disable()
