"""CONTRIBUTING.md names what is there: files, make targets, packages, links, options."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", PAGE.replace("```", ""))


def test_every_path_that_it_names_is_there() -> None:
    named = {word for code in CODE for word in code.split() if re.search(r"/$|/\w|\.(py|md|txt|toml|json)$", word)}
    missing = [each for each in named if not ((ROOT / each).exists() or (ROOT / "toolmem" / each).exists())]
    assert [each for each in missing if not each.startswith(".venv/")] == []
    assert len(named) > 30


def test_every_link_leads_to_a_page() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / link).is_file(), link


def test_every_make_target_is_one() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(CODE + re.findall(r"^\$ .*", PAGE, re.MULTILINE))))
    assert {"test", "lint", "docs", "lowest"} <= named <= targets


def test_every_package_stands_in_the_table_in_the_order_of_the_imports() -> None:
    contract, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    level = {name.strip(" ()"): number for number, names in enumerate(contract["layers"]) for name in names.split("|")}
    packages = re.findall(r"^\| `(\w+)/`", PAGE, re.MULTILINE)
    assert set(packages) == {each.parent.name for each in (ROOT / "toolmem").glob("*/__init__.py")}
    assert [level[each] for each in packages] == sorted(level[each] for each in packages)


@pytest.mark.parametrize("command", [each for each in CODE if each.startswith(".venv/bin/python ")])
def test_every_command_of_python_can_be_given(command: str) -> None:
    script, *options = command.split()[1:]
    if script == "-m":
        ran = subprocess.run(
            [sys.executable, script, *options, "--collect-only"], cwd=ROOT, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stdout
    else:
        text = (ROOT / script).read_text(encoding="utf-8")
        assert all(option in text for option in options)
