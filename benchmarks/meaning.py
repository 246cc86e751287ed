"""Queries that share no word with the tool meant: how often it is found first, and among three.

    python benchmarks/meaning.py

Each tool comes into a store as an agent brings it: one call, with its declaration. `meaning.json`
was written before any encoder was tried.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shared import Table, publish

from toolmem import ToolMem

QUERIES = Path(__file__).with_name("meaning.json")


def measure(overrides: Sequence[str]) -> dict[str, dict[str, float]]:
    """Shares of the queries of each language."""
    held = json.loads(QUERIES.read_text(encoding="utf-8"))
    tools = [{"name": name, "description": told} for name, told in held["tools"].items()]
    calls = [{"tool_name": tool["name"], "output": "done", "success": True} for tool in tools]
    figures = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        ToolMem(Path(folder) / "memory.db", overrides=overrides) as memory,
    ):
        memory.add(calls, tools=tools)
        for language in ("en", "zh"):
            asked = held[language]
            found = {}
            for query in asked:
                hits = memory.retrieve(query, top_k=3).memory_list
                found[query] = [hit.when_to_use for hit in hits]
            first = sum(found[query][0] == tool for query, tool in asked.items())
            three = sum(tool in found[query] for query, tool in asked.items())
            figures[language] = {"first": first / len(asked), "of_three": three / len(asked)}
    return figures


def main() -> None:
    rows = []
    for backend in ("multilingual", "hashing"):
        found = measure([f"embedding_model.default.backend={backend}"])
        rows += [(f"{backend}, {lang}", f["first"], f["of_three"]) for lang, f in found.items()]
    table = Table("Queries that share no word with the tool", ("encoder", "first", "3 best"), rows)
    publish("meaning", "Tools found by what is asked", table)


if __name__ == "__main__":
    main()
