"""A memory in a folder of its own, for the tests of one framework alone (`own_*.py`)."""

from __future__ import annotations

import pytest

from toolmem import ToolMem


@pytest.fixture
def mem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ToolMem(tmp_path / "memory.db") as memory:
        yield memory
