"""No package index has toolmem, so that whoever likes could give another package its name: nothing says to install it
by name, and what is said instead names where it is.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import distribution
from pathlib import Path

import pytest

from toolmem.config import extras

ROOT = Path(__file__).resolve().parents[2]
TEXTS = (".md", ".py", ".j2", ".html", ".yaml", ".yml", ".toml", ".json", ".ipynb", ".js", ".txt")
PLACES = ("toolmem", "docs", "examples", "notebooks", "benchmarks")
BUILT = {"_build", "jupyter_execute", "__pycache__", "data", "results"}
# Among other requirements and options; a path is none, and what is run in a project's own environment needs no index.
BY_NAME = re.compile(
    r"\b(?:pip3?|pipx|uv|poetry|conda|pdm|rye)\s+(?:(?:pip|tool)\s+)?(?:install|add|inject)"
    r"(?:\s+['\"]?[\w-][^\s`;&|]*)*?\s+['\"]?toolmem(?![\w./-])"
    r"|\b(?:uvx|pipx\s+run)\s[^\n`;&|]*?\btoolmem(?![\w./-])"
)


def texts() -> list[Path]:
    found = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile")]
    for place in PLACES:
        found += [path for path in (ROOT / place).rglob("*") if path.suffix in TEXTS and not BUILT & set(path.parts)]
    return found


def test_no_text_says_to_install_toolmem_by_its_name() -> None:
    said = {}
    for path in texts():
        if found := BY_NAME.findall(path.read_text(encoding="utf-8")):
            said[path.relative_to(ROOT).as_posix()] = found
    assert said == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install toolmem",
        "`pip install 'toolmem[serve]'`",
        "pip install -U toolmem",
        "python -m pip install toolmem==1.0",
        "uv tool install toolmem",
        'uv pip install "toolmem[all]"',
        "uvx --from toolmem toolmem serve",
        "pipx install toolmem",
        "poetry add toolmem",
        "pip install requests toolmem",
        "pip install\n    toolmem",
    ],
)
def test_a_line_that_installs_it_by_name_is_seen(line: str) -> None:
    assert BY_NAME.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install .",
        "pip install '.[serve]'",
        "pip install ./toolmem",
        "pip install /opt/toolmem-0.2.whl",
        "uv run toolmem",
        "pip list",
    ],
)
def test_a_line_that_installs_it_from_where_it_is_is_none(line: str) -> None:
    assert not BY_NAME.search(line)


def test_a_missing_extra_is_installed_from_where_toolmem_was() -> None:
    told = json.loads(distribution("toolmem").read_text("direct_url.json") or "{}")
    *command, source = shlex.split(extras.install_line("serve"))
    assert command[:2] == ["pip", "install"]
    folder = source.removesuffix("[serve]")
    assert source.endswith("[serve]")
    assert Path(folder).exists()
    assert told["url"] == Path(folder).as_uri()


def test_where_toolmem_came_from_nowhere_that_is_known_its_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_source", lambda: ("", False))
    assert extras.install_line("serve") == "pip install '.[serve]' in a checkout of toolmem"
