"""A Python process that has the core alone: whatever an extra brings cannot be imported there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from toolmem.config.extras import EXTRAS

BROUGHT = {
    **EXTRAS,
    "dashscope": (*EXTRAS["dashscope"], "tiktoken"),
    "research": (*EXTRAS["research"], "IPython", "nbformat"),
    "serve": (*EXTRAS["serve"], "mcp_types", "starlette"),
}

_PRELUDE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def core(tmp_path: Path) -> Run:
    """core(code): run it where no extra is installed; `absent` names fewer of them."""

    def run(code: str, absent: Sequence[str] = tuple(EXTRAS)) -> subprocess.CompletedProcess[str]:
        names = {name for extra in absent for name in BROUGHT[extra]}
        whole = _PRELUDE.format(names=names) + code
        return subprocess.run(
            [sys.executable, "-c", whole], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.fixture
def command(core: Run) -> Run:
    """command("rules", "list"): the command line there."""

    def run(*arguments: str, absent: Sequence[str] = tuple(EXTRAS)) -> subprocess.CompletedProcess[str]:
        return core(f"from toolmem.cli import main\nmain({list(arguments)!r})", absent)

    return run
