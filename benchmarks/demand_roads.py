"""What the same notes of demands are worth on each road by which they reach a memory.

    python benchmarks/demand_roads.py [--quick] [--json FILE]

Data and counts are those of `demands.py`. Roads: an agent's session, the common part of the adapters of frameworks, a
flow whose configured model answers with the notes (`rules.capture: model`), HTTP and JSON-RPC on a store that nobody
holds, HTTP on a store that hooks hold agents to, and an agent's own tools as MCP has them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from demands import SHARED, Message, read
from tables import Figure, arguments, show

from toolmem import AgentSession, AsyncToolMem
from toolmem.hosts.adapters.common import AgentMemory
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.operations.agent_tools import AgentTools
from toolmem.testing.scripted_llm import ScriptedLLM
from toolmem.testing.service_process import ServiceProcess

Call = Mapping[str, Any]
IN_FORCE, PROPOSED = "in force", "proposals alone"
ALL = 170  # messages


def noted(message: Message) -> list[Call]:
    return [call["arguments"] for call in message.calls if call["name"] == "note_demand"]


class Session:
    """An agent's session, whose model calls `note_demand`."""

    @asynccontextmanager
    async def of(self, message: Message, number: int) -> AsyncIterator[Session]:
        async with AsyncToolMem(":memory:") as mem:
            self.talk = await AgentSession.start(mem, tools=message.tools)
            self.talk.messages(message.text)
            yield self

    async def note(self, message: Message) -> list[str]:
        return [json.loads(await self.talk.call_tool("note_demand", each))["outcome"] for each in noted(message)]

    async def stops(self, call: Call) -> bool:
        return (await self.talk.check(call["tool"], call["arguments"])).stops


class Adapter(Session):
    """What every framework's adapter speaks to."""

    @asynccontextmanager
    async def of(self, message: Message, number: int) -> AsyncIterator[Adapter]:
        async with AsyncToolMem(":memory:") as mem:
            self.adapter = AgentMemory(mem, "here").of()
            await self.adapter.prompt(message.tools, said=message.text)
            yield self

    async def note(self, message: Message) -> list[str]:
        return [json.loads(await self.adapter.answer("note_demand", each))["outcome"] for each in noted(message)]

    async def stops(self, call: Call) -> bool:
        return (await self.adapter.begin(call["tool"], call["arguments"])).stops


class Flow(Session):
    """`rules.capture: model`; the model answers with the notes, and once more where one was refused."""

    @asynccontextmanager
    async def of(self, message: Message, number: int) -> AsyncIterator[Flow]:
        calls = [each for each in message.calls if each["name"] == "note_demand"]
        llm = ScriptedLLM(lambda _: json.dumps({"calls": calls}))
        async with AsyncToolMem(":memory:", overrides=["rules.capture=model"], llms={"default": llm}) as self.mem:
            yield self

    async def note(self, message: Message) -> list[str]:
        told = await self.mem.capture_rules(message.text, tools=message.tools, session_id="here")
        quotes = {rule.rule for rule in told.rules if "noted-demand" in rule.tags and rule.status == "active"}
        return ["kept" if each["quote"].strip() in quotes else "refused" for each in noted(message)]

    async def stops(self, call: Call) -> bool:
        return (await self.mem.check_tool_call(call["tool"], call["arguments"], conversation_id="here")).stops


class Mcp(Session):
    """An agent's own tools, as the MCP server offers them."""

    @asynccontextmanager
    async def of(self, message: Message, number: int) -> AsyncIterator[Mcp]:
        async with AsyncToolMem(":memory:") as self.mem:
            yield self

    async def note(self, message: Message) -> list[str]:
        tools = AgentTools(self.mem.app.services)
        return [(await tools.call("note_demand", each))["outcome"] for each in noted(message)]

    async def stops(self, call: Call) -> bool:
        return (await self.mem.check_tool_call(call["tool"], call["arguments"], conversation_id="here")).stops


class Http(Session):
    """`POST /note_demand`; a workspace for each message."""

    def __init__(self, url: str) -> None:
        self.client = httpx.AsyncClient(base_url=url, timeout=60)

    @asynccontextmanager
    async def of(self, message: Message, number: int) -> AsyncIterator[Http]:
        self.named = {"workspace_id": f"{type(self).__name__}-{number}", "conversation_id": "here"}
        yield self

    def request(self, message: Message, note: Call) -> dict[str, Any]:
        return {**self.named, "user_message": message.text, "tools_available": message.tools, **note}

    async def note(self, message: Message) -> list[str]:
        requests = [self.request(message, each) for each in noted(message)]
        return [(await self.posted("/note_demand", each))["metadata"]["outcome"] for each in requests]

    async def stops(self, call: Call) -> bool:
        asked = {**self.named, "tool_name": call["tool"], "input": call["arguments"]}
        decision = (await self.posted("/check_tool_call", asked))["metadata"]["decision"]
        return decision["action"] in ("deny", "ask")

    async def posted(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self.client.post(path, json=body)
        return dict(answer.json())


class JsonRpc(Http):
    """`memory.demand_note`."""

    async def note(self, message: Message) -> list[str]:
        asked = [{"params": self.request(message, each)} for each in noted(message)]
        bodies = [{"jsonrpc": "2.0", "id": 1, "method": "memory.demand_note", **each} for each in asked]
        return [(await self.posted("/rpc", body))["result"]["outcome"] for body in bodies]


async def figures_of(name: str, road: Session, expected: str, messages: list[Message]) -> list[Figure]:
    counts = dict.fromkeys(("notes", "kept", "false", "stops", "stopped", "near", "near stopped"), 0)
    for number, message in enumerate(messages):
        async with road.of(message, number):
            outcomes = await road.note(message)
            if message.kind == "standing":
                counts["notes"] += len(outcomes)
                counts["kept"] += outcomes.count("kept")
                for call in message.labelled_calls("stops"):
                    counts["stops"] += 1
                    counts["stopped"] += await road.stops(call)
            elif message.kind != "session":
                counts["false"] += outcomes.count("kept")
            for call in message.labelled_calls("passes"):
                counts["near"] += 1
                counts["near stopped"] += await road.stops(call)
    least = expected == IN_FORCE
    told = f"of {counts['notes']} of standing demands; {counts['false']} of other messages"
    kept = Figure(
        f"{name}: notes in force", counts["kept"], "notes", counts["notes"] * least, at_least=least, basis=told
    )
    held = Figure(
        f"{name}: forbidden calls stopped",
        counts["stopped"],
        "calls",
        124 if least and len(messages) == ALL else None,
        at_least=least,
        basis=f"of {counts['stops']}",
    )
    near = Figure(f"{name}: near calls stopped", counts["near stopped"], "calls", 5, basis=f"of {counts['near']}")
    return [kept, held, near]


async def measure(quick: bool) -> list[Figure]:
    written = {each["id"]: each["calls"] for each in read("A.notes.repaired.jsonl")}
    messages = [Message(each, written[each["id"]]) for each in read("A.jsonl")][: 40 if quick else None]
    figures: list[Figure] = []
    for name, road in (("session", Session()), ("adapters", Adapter()), ("rules.capture: model", Flow())):
        figures += await figures_of(name, road, IN_FORCE, messages)
    figures += await figures_of("MCP alone", Mcp(), PROPOSED, messages)
    with tempfile.TemporaryDirectory(prefix="toolmem-") as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        with ServiceProcess(Path(folder, "free"), f"vector_store.default.params.path={folder}/free.db") as free:
            figures += await figures_of("HTTP", Http(free.url), IN_FORCE, messages)
            figures += await figures_of("JSON-RPC", JsonRpc(free.url), IN_FORCE, messages)
        settings = Path(folder, "settings.json")
        settings.write_text("{}", encoding="utf-8")  # noqa: ASYNC240  # nothing else runs
        keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))
        store = Path(folder, "repo", ".toolmem", "memory.db")
        with ServiceProcess(Path(folder, "repo"), f"vector_store.default.params.path={store}") as held:
            figures += await figures_of("HTTP, held store", Http(held.url), PROPOSED, messages)
    return figures


def main() -> None:
    given = arguments(__doc__)
    if not SHARED.is_dir():
        print(f"no labelled messages here: {SHARED.name} is not beside the project", file=sys.stderr)
        return
    show(asyncio.run(measure(given.quick)), given.json)


if __name__ == "__main__":
    main()
