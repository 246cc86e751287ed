"""The page on the client: its cells run, one after the other, and show what its prose says."""

from __future__ import annotations

import ast
import inspect
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from toolmem.client.clients import Batch
from toolmem.operations.methods import Methods
from toolmem.operations.operation import Operation
from toolmem.testing.service_process import ServiceProcess

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
CELLS = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def stopped(monkeypatch):
    """Ends a service that a failed cell has left."""
    started: list[ServiceProcess] = []
    start = ServiceProcess.start

    def noted(service: ServiceProcess) -> ServiceProcess:
        started.append(service)
        return start(service)

    monkeypatch.setattr(ServiceProcess, "start", noted)
    yield
    for service in started:
        service.kill()


async def test_the_cells_run_and_show_what_the_page_says(stopped, monkeypatch):
    monkeypatch.delenv("TOOLMEM_TOKEN", raising=False)
    names: dict[str, Any] = {}
    outputs = [await _run(cell, names) for cell in CELLS]
    shown = "\n".join(outputs)
    assert "False Evaluated 2 of 3 tool calls, 1 failed" in shown
    assert "index=2" in shown
    assert "search 0.5 0.5" in shown
    assert "- **[critical]** never email Sarah at sarah@example.com" in shown
    assert re.search(r"ToolMemoryRule \nRequestError rule is required.*\nlist ", shown)
    assert "tool_nmes | tool_nmes: unknown (did you mean 'tool_names'?)" in shown
    assert "ServiceUnreachable | nothing answers at http://127.0.0.1:9" in shown
    assert "1 known" in shown
    assert outputs[-2:] == ["1 2\n", "0\n"]


async def _run(cell: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    code = compile(cell, "client.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(printed):
        outcome = eval(code, names)
        if inspect.isawaitable(outcome):
            await outcome
    return printed.getvalue()


def test_every_method_stands_on_the_page():
    for owner in (Methods, *Batch.__mro__):
        for name, method in vars(owner).items():
            if isinstance(method, Operation):
                assert re.search(rf"`{name}[(`]", PAGE), name
