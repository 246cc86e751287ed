"""The pages that show a backend of one's own hold: their files pass the contract, their cells run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*\n?(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def cells(page):
    return [found["body"] for found in CELL.finditer((HOW_TO / page).read_text(encoding="utf-8"))]


def written(page, folder):
    """Write the page's files; answers its cells of Python."""
    python = []
    for body in cells(page):
        head, _, rest = body.partition("\n")
        if head.startswith("%%writefile "):
            (folder / head.removeprefix("%%writefile ").strip()).write_text(rest, encoding="utf-8")
        elif not head.startswith("%%"):
            python.append(body)
    return python


def run(folder, *arguments):
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )


PAGES = ["write-a-judge.md", "write-a-store.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_example_passes_the_contract(page, tmp_path):
    written(page, tmp_path)
    ran = run(
        tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sorted(p.name for p in tmp_path.glob("test_*"))
    )
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_cells_run_and_the_configuration_names_the_example(page, tmp_path):
    (tmp_path / "whole.py").write_text("\n".join(written(page, tmp_path)), encoding="utf-8")
    ran = run(tmp_path, "whole.py")
    assert ran.returncode == 0, ran.stderr
    (configuration,) = (path.name for path in tmp_path.glob("*.yaml"))
    ran = run(tmp_path, "-m", "toolmem", "config", "check", "--config", configuration)
    assert ran.returncode == 0, ran.stderr
