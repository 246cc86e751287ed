"""Search by meaning: 60 queries that share no word with their tool, and 20 that fit none (meaning.json, frozen).

    python benchmarks/meaning.py [OVERRIDE ...]     e.g. embedding_model.default.backend=hashing

Each tool comes into a store as an agent brings it: one call, with its declaration. First hit, among three, and marks.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from toolmem.app import ToolMemApp

QUERIES = Path(__file__).with_name("meaning.json")


async def measured(overrides: list[str]) -> dict[str, Any]:
    held = json.loads(QUERIES.read_text(encoding="utf-8"))
    tools = [{"name": name, "description": told, "parameters": {}} for name, told in held["tools"].items()]
    calls = [{"tool_name": tool["name"], "input": {}, "output": "done", "success": True} for tool in tools]
    with tempfile.TemporaryDirectory() as folder:
        place = f"vector_store.default.params.path={folder}/memory.db"
        async with ToolMemApp(None, [place, *overrides]) as app:
            await app.run_flow("add_tool_call_result", workspace_id="w", tool_call_results=calls, tools=tools)
            if "--summarized" in sys.argv:
                names = list(held["tools"])
                await app.run_flow("summary_tool_memory", workspace_id="w", tool_names=names)

            async def hits(query: str) -> tuple[list[str], bool]:
                answer = await app.run_flow("retrieve_tool_memory", workspace_id="w", query=query, top_k=3)
                found = answer.metadata["memory_list"]
                low = not found or found[0]["metadata"].get("relevance") == "low"
                return [memory["when_to_use"] for memory in found], low

            began = time.perf_counter()
            await hits("anything")
            figures: dict[str, Any] = {"first_query_seconds": round(time.perf_counter() - began, 2)}
            marked = 0
            for language in ("en", "zh"):
                asked = held[language]
                found = {query: await hits(query) for query in asked}
                first = sum(names[:1] == [asked[query]] for query, (names, _) in found.items())
                three = sum(asked[query] in names for query, (names, _) in found.items())
                marked += sum(low for _, low in found.values())
                figures[language] = {"first": round(first / len(asked), 2), "of_three": round(three / len(asked), 2)}
            figures["good_marked"] = round(marked / (len(held["en"]) + len(held["zh"])), 3)
            figures["unfit_not_marked"] = sum([not (await hits(query))[1] for query in held["nothing"]])
            figures["unfit"] = len(held["nothing"])
            return figures


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    print(json.dumps(asyncio.run(measured(given)), ensure_ascii=False))
