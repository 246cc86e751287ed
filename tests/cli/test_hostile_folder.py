"""What lies in the working directory: no file of it runs, no address in it gets a key, no memory in it is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = {
    "console script": [
        *(sys.executable, "-P", "-c"),
        "import sys; sys.argv[0] = 'toolmem'; from toolmem.cli import main; main()",
    ],
    "module": [sys.executable, "-m", "toolmem"],
}
# Modules that libraries import where they are there: whoever puts one into a folder waits for somebody to work in it.
OPTIONAL = (
    *("colorama", "orjson", "simplejson", "shellingham", "brotli", "zstandard", "socks", "chardet", "pyarrow"),
    *("numexpr", "bottleneck", "opentelemetry", "aiodns", "sitecustomize", "usercustomize", "ipython_config"),
)


def run(how: str, *arguments: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND[how], *arguments],
        cwd=cwd,
        input=stdin,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def lay_traps(folder: Path) -> None:
    for name in OPTIONAL:
        (folder / f"{name}.py").write_text(
            f"import pathlib\n(pathlib.Path({str(folder)!r}) / 'ran-{name}').touch()\nraise ImportError\n"
        )


def sprung(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("ran-*"))


@pytest.mark.parametrize(
    ("how", "commands"),
    [
        ("console script", [["rules", "list"], ["evaluate", "--limit", "2"]]),  # an evaluation runs a notebook, too
        ("module", [["rules", "list"], ["config", "check"]]),
    ],
)
def test_no_file_of_the_working_directory_runs(how, commands, tmp_path):
    lay_traps(tmp_path)
    for arguments in commands:
        ran = run(how, *arguments, cwd=tmp_path)
        assert sprung(tmp_path) == []
        assert ran.returncode == 0, ran.stderr


def test_the_working_directory_is_searched_while_op_modules_are_imported_and_not_after(tmp_path):
    lay_traps(tmp_path)
    (tmp_path / "beside.py").write_text("answer = 42\n")
    (tmp_path / "my_ops.py").write_text(
        "import beside\nfrom toolmem import Op, register\n\n"
        "@register\nclass LookOp(Op):\n"
        "    async def execute(self, context):\n"
        "        try:\n"
        "            import colorama\n"
        "        except ModuleNotFoundError:\n"
        "            context.response.answer = f'{beside.answer}, not found'\n"
    )
    (tmp_path / "my.yaml").write_text("op_modules: [my_ops]\nflow: {look: {flow_content: LookOp()}}\n")
    ran = run("console script", "run", "look", "--config", "my.yaml", cwd=tmp_path, stdin='{"workspace_id": "w"}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["answer"] == "42, not found"
    assert sprung(tmp_path) == []
