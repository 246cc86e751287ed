"""The README's Python blocks run as written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "import" in block]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0][:40])
def test_a_python_block_of_the_readme_runs_as_written(block, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


def test_the_agent_loop_shows_the_rule_that_binds():
    loop = next(block for block in BLOCKS if "AgentSession" in block)
    assert len([line for line in loop.splitlines() if line.strip()]) <= 25


def test_the_agent_says_the_same_every_time_it_is_run(tmp_path):
    loop = next(block for block in BLOCKS if "AgentSession" in block)
    first, second = (
        subprocess.run([sys.executable, "-c", loop], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert "never email Sarah" in first
    assert second == first


def test_every_page_that_the_readme_links_is_there():
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (Path(__file__).resolve().parents[2] / link).exists(), link
