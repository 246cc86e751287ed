"""The cues of instructions: the tables that run are those of the YAML files, and each cue keeps to its examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_that_run_are_made_of_the_yaml_files() -> None:
    checked = subprocess.run([sys.executable, ROOT / "docs" / "capture_tables.py", "--check"], check=False)
    assert checked.returncode == 0, "write them with `python docs/capture_tables.py`"


def test_reading_a_message_needs_no_yaml_and_no_pydantic_of_its_own() -> None:
    modules = ["cues", "english", "chinese", "pasted", "shown_text", "sentences", "tables"]
    code = "import sys\n" + "".join(f"import toolmem.rules.capture.{name}\n" for name in modules)
    code += "print([name for name in ('yaml', 'pydantic', 'numpy') if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
