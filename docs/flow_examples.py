"""Runs the requests of toolmem/server/http/examples.jsonl again, and writes the file with what is answered now."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile

from toolmem.app import ToolMemApp
from toolmem.server.http.openapi import EXAMPLES, Example, recorded
from toolmem.testing.clock import ManualClock


async def replayed(asked: list[Example]) -> list[Example]:
    """The same requests to an empty store, with what is answered now."""
    answered = []
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"vector_store.default.params.path='{folder}/memory.db'", f"dump_dir='{folder}/dumps'"]
        async with ToolMemApp(overrides=overrides, clock=ManualClock()) as app:
            for each in asked:
                response = await app.run_flow(each.flow, **each.request)
                text = response.model_dump_json().replace(f"{folder}/dumps", ".toolmem/dumps")
                answered.append(each._replace(response=json.loads(text)))
    return answered


def as_text(given: list[Example]) -> str:
    """The file's text; ids and versions are numbered in the order in which they appear."""
    text = "".join(json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in given)
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        number = numbers.setdefault(found[1], len(numbers) + 1)
        return re.sub(r"[0-9a-f]", "0", found[1])[: -len(f"{number:x}")] + f"{number:x}"

    return _ID.sub(numbered, text)


_ID = re.compile(
    r"((?<![\w-])[0-9a-f]{32}\b"  # memories
    r"|(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # rules
    r"|(?<![\w-])[0-9a-f]{16}(?=-\d+\b)"  # calls
    r"|(?<=@)[0-9a-f]{12}\b|(?<=\"prompt_version\": \")[0-9a-f]{12}\b)"  # versions of prompts and of the check
)


if __name__ == "__main__":
    EXAMPLES.write_text(as_text(asyncio.run(replayed(recorded()))), encoding="utf-8")
