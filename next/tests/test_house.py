"""The house stays small: lines of each folder, files, modules and functions, order of imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "toolmem"
KINDS = {".py", ".yaml", ".json", ".md", ".j2", ".js", ".css", ".txt", ".sql"}
BUDGETS = {
    "models": 820,
    "text": 1600,
    "config": 1100,
    "store": 3300,
    "llm": 1150,
    "judge": 2250,
    "guidance": 2250,
    "formats": 800,
    "view": 2200,
    "flow": 1150,
    "ops": 1050,
    "operations": 1000,
    "memory": 470,
    "research": 2350,
    "cli": 1248,
    "testing": 650,
}
MAX_FILES = 250
MAX_MODULE = 450
MAX_FUNCTION = 60
LAYERS = (  # from the top; a package imports from those below it only
    {"cli"},
    {"research", "testing"},
    {"memory"},
    {"operations"},
    {"ops"},
    {"flow"},
    {"guidance", "judge"},
    {"formats", "llm", "store"},
    {"view"},
    {"config"},
    {"text"},
    {"models"},
    {"errors"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("folder", BUDGETS)
def test_each_folder_stays_within_its_budget(folder: str) -> None:
    files = [each for each in (PACKAGE / folder).rglob("*") if each.suffix in KINDS]
    assert sum(map(lines_of, files)) <= BUDGETS[folder]


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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_layers_below_it(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if own not in LEVEL:
        return  # the package itself, which imports lazily
    wrong = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "toolmem" or len(parts) == 1 or parts[1] == own:
                continue
            if LEVEL.get(parts[1], -1) <= LEVEL[own]:
                wrong.append(name)
    assert wrong == []
