"""The package stays small: lines of each folder, files, modules, functions, order of imports."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

PACKAGE = Path(__file__).parents[1] / "toolmem"
KINDS = {".py", ".yaml", ".json", ".md", ".j2", ".js", ".css", ".txt", ".sql"}
BUDGETS = {
    "models": 865,
    "text": 1420,
    "config": 1148,
    "store": 3472,
    "llm": 1584,
    "judge": 2202,
    "guidance": 2051,
    "formats": 2172,
    "view": 2330,
    "flow": 1068,
    "ops": 1260,
    "operations": 1087,
    "memory": 490,
    "research": 1265,
    "cli": 1890,
    "testing": 432,
    "rules": 4520,
    "guard": 1470,
    "session": 970,
    "pages": 400,
    "server": 1586,
    "hooks": 2279,
    "adapters": 757,
}
SINGLE_FILES = 339  # __init__, __main__, errors, client
MAX_LINES = 37_150
# Files that an operation enters, as benchmarks/paths.py finds them. The numbers may only fall.
MAX_ENTERED = {"add": 32, "summarize": 32, "guidance": 16, "sentence": 27, "planned call": 31}
MAX_FILES = 258
MAX_MODULE = 450
MAX_FUNCTION = 60
MODULES = sorted(PACKAGE.rglob("*.py"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("folder", BUDGETS)
def test_each_folder_stays_within_its_budget(folder: str) -> None:
    files = [each for each in (PACKAGE / folder).rglob("*") if each.suffix in KINDS]
    assert sum(map(lines_of, files)) <= BUDGETS[folder]


def test_who_takes_more_room_takes_it_from_another_folder() -> None:
    assert sum(BUDGETS.values()) + SINGLE_FILES <= MAX_LINES


def test_every_folder_has_a_budget() -> None:
    found = {each.parent.relative_to(PACKAGE).parts[0] for each in PACKAGE.glob("*/*.py")}
    assert found <= BUDGETS.keys()


def test_there_are_few_files_and_no_long_module() -> None:
    assert len(MODULES) <= MAX_FILES
    assert [str(each) for each in MODULES if lines_of(each) > MAX_MODULE] == []


def test_no_function_is_long() -> None:
    long = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or 0) - node.lineno + 1
                if size > MAX_FUNCTION:
                    long.append(f"{path.name}:{node.name} {size}")
    assert long == []


def test_a_folder_imports_only_from_those_below_it() -> None:
    """As the contract in pyproject.toml orders them."""
    configuration = str(PACKAGE.parent / "pyproject.toml")
    assert lint_imports(config_filename=configuration, no_cache=True) == 0


def test_an_operation_enters_few_files() -> None:
    found = runpy.run_path(str(PACKAGE.parent / "benchmarks" / "paths.py"))["paths"]()
    assert found.keys() == MAX_ENTERED.keys()
    assert {
        name: len(files) for name, files in found.items() if len(files) > MAX_ENTERED[name]
    } == {}
