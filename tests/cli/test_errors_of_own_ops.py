"""An op of one's own that raises is named, with its flow, and has an exit code of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OP = """
from toolmem import Op, register


@register
class BrokenOp(Op):
    reads = ("workspace_id",)

    async def execute(self, context):
        raise {raised}
"""


def _run(
    folder: Path, *arguments: str, raised: str = 'ValueError("no such \\x1b[31mcolour")'
) -> subprocess.CompletedProcess[str]:
    (folder / "own_ops.py").write_text(OP.format(raised=raised))
    (folder / "own.yaml").write_text(
        "op_modules: [own_ops]\nflow:\n  mine:\n    flow_content: BrokenOp()\n    input_schema:\n"
        "      workspace_id: {type: string}\n"
    )
    command = [sys.executable, "-m", "toolmem", *arguments, "run", "mine", "--config", "own.yaml"]
    return subprocess.run(
        command,
        cwd=folder,
        input='{"workspace_id": "w"}',
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_error_names_op_and_flow_and_shows_no_traceback(tmp_path: Path) -> None:
    ran = _run(tmp_path)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert ran.stderr.splitlines()[-1] == (
        "toolmem: ValueError: no such \\u001b[31mcolour (raised by the op 'broken_op' in the flow 'mine'; "
        "--debug shows where)"
    )
    assert "Traceback" not in ran.stderr


def test_debug_shows_where_it_was_raised(tmp_path: Path) -> None:
    ran = _run(tmp_path, "--debug")
    assert ran.returncode == 4
    assert "Traceback (most recent call last)" in ran.stderr
    assert 'own_ops.py", line 10, in execute' in ran.stderr


@pytest.mark.parametrize("raised", ["KeyError('a')", "RuntimeError", "TimeoutError()"])
def test_every_kind_of_error_is_named(tmp_path: Path, raised: str) -> None:
    ran = _run(tmp_path, raised=raised)
    assert ran.returncode == 4
    assert f"toolmem: {raised.partition('(')[0]}" in ran.stderr
    assert "raised by the op 'broken_op' in the flow 'mine'" in ran.stderr
