"""The page that follows one call through the files, from the results of `benchmarks/files_entered.py`."""

from __future__ import annotations

import ast
import json

from page_writers.benchmarks import RESULTS, ROOT

_HEAD = """\
# One call, followed

What `ToolMem.add` of two calls goes through, to the store and back: each file of `toolmem/` in the order in which it is
entered, with its first sentence. The memory had been used before, so what is only read at a start is not among them.
Files that only the store's own threads enter are marked. Printed by `python benchmarks/files_entered.py`, for a
summary, guidance and a session's turn as well; `--json benchmarks/results/files_entered.json` keeps it for this page.

| file | what it is |
|---|---|
"""


def one_call() -> str:
    body = json.loads((RESULTS / "files_entered.json").read_text(encoding="utf-8"))
    return _HEAD + "".join(
        f"| `{file}` | {_what(file)}{' *(store)*' if mark else ''} |\n" for file, mark in body["files"].items()
    )


def _what(file: str) -> str:
    told = ast.get_docstring(ast.parse((ROOT / "toolmem" / file).read_text(encoding="utf-8"))) or ""
    return " ".join(told.partition("\n\n")[0].split()).replace("|", "\\|")
