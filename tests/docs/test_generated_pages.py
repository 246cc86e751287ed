"""The generated pages say what the code says now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_generated_pages_are_what_the_code_and_the_results_give(tmp_path):
    checked = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_the_public_names_are_what_all_says_and_each_can_be_had():
    import toolmem

    assert sorted(toolmem.__all__) == toolmem.__all__
    for name in toolmem.__all__:
        assert getattr(toolmem, name) is not None
    assert set(toolmem.__all__) <= set(dir(toolmem))


def test_importing_toolmem_loads_no_heavy_library():
    loaded = subprocess.run(
        [sys.executable, "-c", "import toolmem, sys; print(' '.join(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"numpy", "pandas", "matplotlib", "pydantic", "apsw", "dashscope", "omegaconf"} & set(loaded)


def test_the_page_of_commands_keeps_examples_in_blocks_and_names_of_arguments_whole():
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    outside = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^(?:[A-Z_]+=\S+ )*toolmem \w.*$", outside, re.MULTILINE)
    names = re.findall(r"^\| `([^`]+)`", outside, re.MULTILINE)
    assert names
    assert all(re.fullmatch(r"-{1,2}[a-z-]+|[A-Z_]+|\d+", name) for name in names)
