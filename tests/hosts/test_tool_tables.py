"""What an agent's file says of its tools is what the guard knows of their names, wherever they are met."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile, before, user_said
from toolmem.guard.tool_classes import CLASSES, scopes_of
from toolmem.hosts.host import HOSTS, host_of

HERE = [name for name, module in HOSTS.items() if importlib.util.find_spec(module) is not None]
_OTHERS = {"search"}  # of files: no sentence is kept for it


def own_tools() -> Iterator[Any]:
    for name in HERE:
        for tool, classes in host_of(name).tools.items():
            yield pytest.param(tool, classes, id=f"{name} {tool}")


@pytest.mark.parametrize(("tool", "classes"), list(own_tools()))
def test_each_tool_is_of_the_classes_that_its_agent_says(tool: str, classes: tuple[str, ...]) -> None:
    assert set(classes) <= {*CLASSES, *_OTHERS}
    assert scopes_of(tool) == tuple(f"@{each}" for each in classes if each not in _OTHERS)


@pytest.mark.parametrize("said_in", HERE)
@pytest.mark.parametrize("done_in", HERE)
def test_what_is_said_in_one_agent_binds_the_shell_of_another(said_in: str, done_in: str, tmp_path: Path) -> None:
    shells = [tool for tool, classes in host_of(done_in).tools.items() if "shell" in classes]
    assert shells
    with StoreFile(tmp_path / "memory.db") as store:
        tools = list(host_of(said_in).tools)
        user_said(store, "Never push to main.", tools=tools, session_id="s", turn=1, by_class=True)
        for tool in shells:
            for branch, expected in (("main", "deny"), ("feature/x", "allow")):
                call = {"tool_name": tool, "input": {"command": f"git push origin {branch}"}}
                assert before(store, call, classes=host_of(done_in).tools[tool]).action == expected, tool
