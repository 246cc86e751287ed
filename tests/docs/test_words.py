"""Public names of toolmem use the field's words: none is named by an idiom that only its authors know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TOOLMEM = Path(__file__).resolve().parents[2] / "toolmem"
IDIOMS = re.compile(r"(?:^|_)(room|grave|door|doorkeeper|lane|hear|heard|shelf|decree|elsewhere)s?(?:_|$)")
TODAY = {  # take out what is renamed; nothing comes in
    "server/mcp/http.py: door",
}


def names(file: Path) -> Iterator[str]:
    """The module and the public classes and functions that it defines."""
    yield file.stem
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).lower()


def test_no_name_is_an_idiom_but_those_that_are_still_to_be_renamed():
    found = {
        f"{file.relative_to(TOOLMEM).as_posix()}: {name}"
        for file in TOOLMEM.rglob("*.py")
        for name in names(file)
        if IDIOMS.search(name)
    }
    assert found <= TODAY, "say it in the field's words: " + ", ".join(sorted(found - TODAY))
