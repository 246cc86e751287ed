"""The notebooks run as they stand in the repository: offline, leaving nothing behind, and without outputs in git.

`01_evaluate_tool_calls.md` shows an evaluation from a directory and is executed over several of them by the tests of
the report (`tests/research/report/test_report_page.py`); here it is only looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jupytext
import pytest
from nbformat.v4 import new_code_cell

from toolmem.errors import ToolMemError
from toolmem.research.report.kernel import execute

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.md"))
STAND_ALONE = [path for path in NOTEBOOKS if not path.name.startswith("01_")]
REPLAYS = {"03_smart_skip", "04_summarization_cost", "07_advice"}  # hundreds of calls, some under several policies

# Put in front of a notebook. The kernel itself talks over sockets of ZeroMQ, which are not Python's.
NO_NETWORK = """
import socket


def refuse(*_, **__):
    raise AssertionError("the notebook asked for the network")


socket.getaddrinfo = refuse
socket.socket.connect = socket.socket.connect_ex = refuse
del socket
"""


def run_offline(path: Path, folder: Path) -> Any:
    notebook = jupytext.read(path)
    notebook.cells.insert(0, new_code_cell(NO_NETWORK))
    execute(notebook, folder, {})
    return notebook


def outputs_of(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.stem in REPLAYS else (), id=path.stem)
        for path in STAND_ALONE
    ],
)
def test_a_notebook_runs_offline_without_a_warning_and_leaves_nothing_behind(path, tmp_path):
    notebook = run_offline(path, tmp_path)
    outputs = outputs_of(notebook)
    assert outputs
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", STAND_ALONE, ids=lambda path: path.stem)
def test_a_notebook_asserts_what_it_claims(path):
    code = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    assert sum("assert " in source for source in code) >= len(code) / 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_plain_myst_without_outputs(path):
    notebook = jupytext.read(path)
    assert outputs_of(notebook) == []
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    written = jupytext.writes(notebook, fmt="md:myst")
    plain = "".join(line for line in written.splitlines(keepends=True) if "jupytext_version:" not in line)
    assert plain == path.read_text(encoding="utf-8")


def test_the_notebooks_are_numbered_in_reading_order_and_nothing_else_is_kept_beside_them():
    kept = [path for path in sorted(FOLDER.iterdir()) if not path.name.startswith(".")]
    assert kept == NOTEBOOKS
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{number:02}_" for number in range(1, len(NOTEBOOKS) + 1)]
    assert len(STAND_ALONE) == len(NOTEBOOKS) - 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')", "asked for the network"),
        ("assert 1 + 1 == 3", "AssertionError"),
    ],
)
def test_a_cell_that_asks_for_the_network_or_claims_what_is_wrong_fails(code, message, tmp_path):
    book = tmp_path / "book.md"
    head = STAND_ALONE[0].read_text(encoding="utf-8").split("\n# ")[0]
    book.write_text(f"{head}\n# Title\n\n```{{code-cell}} ipython3\n{code}\n```\n", encoding="utf-8")
    with pytest.raises(ToolMemError, match=message):
        run_offline(book, tmp_path)
