"""The README's console blocks run as written, in order, in one shell in a fresh copy of the checkout.

Left out are `make`, which builds an environment of its own, and what installs packages, which asks a package index.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import BLOCKS, commands, programs

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("make", "pip", "python3", ".")
PORT = "8765"  # on the page
FILE = re.compile(r"(?:.*=)?(?P<path>[\w./~-]+\.(?:jsonl?|ya?ml|gz|toml|txt|csv|py|db))")
MADE = {"toolmem evaluate": ("report/memory.db", "report/report.html")}


def lines() -> Iterator[str]:
    for block in BLOCKS:
        if block.page == "README.md" and block.kind == "console":
            yield from commands(block)


def runs_here(line: str) -> bool:
    return not any(words[:1] == [name] for words in programs(line) for name in ELSEWHERE)


def test_every_file_that_a_line_names_is_made_by_a_line_before_it() -> None:
    made: set[str] = set()
    for line in lines():
        for words in programs(line):
            named = {found["path"] for word in words if (found := FILE.fullmatch(word))}
            missing = {path for path in named - made if not (ROOT / path).exists()}
            assert not missing, f"{line}: nothing makes {missing}"
            made.update(MADE.get(" ".join(words[:2]), ()))
        made.update(re.findall(r">\s*(\S+)", line))


@pytest.mark.slow
def test_the_readmes_commands_run_as_written_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "toolmem"
    folder.mkdir()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for name in tracked:
        if name.startswith(("toolmem/", "README")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    script = "".join(line.replace(PORT, port) for line in lines() if runs_here(line))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}"
