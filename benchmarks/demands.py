"""What notes of demands are worth: on messages in ordinary words, with the notes that a large model wrote of them.

    python benchmarks/demands.py [--quick] [--json FILE]

Data: `../shared/data/demands` beside the project (170 labelled messages of one author, the notes of one model). Each
note is verified against its message and kept in a store of its own; then the labelled calls are asked about.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from tables import Figure, arguments, show

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "demands"
ELSEWHERE = {  # how other agents hand the same call over
    "codex": {"shell": ("exec_command", "command")},
    "gemini": {"shell": ("run_shell_command", "command")},
    "opencode": {"shell": ("bash", "command")},
}


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SHARED / name).read_text(encoding="utf-8").splitlines()]


class Message:
    """One labelled message, its notes kept in a store of its own."""

    def __init__(self, labelled: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> None:
        self.kind: str = labelled["kind"]
        self.text: str = labelled["text"]
        self.labelled = labelled
        self.tools = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "inputSchema": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in tool["parameters"].items()},
                },
            }
            for tool in labelled["tools"]
        ]
        self.calls = calls

    def labelled_calls(self, of: str) -> Iterator[Mapping[str, Any]]:
        for demand in self.labelled["demands"]:
            yield from demand[of]


async def measure(quick: bool) -> list[Figure]:
    from toolmem import AsyncToolMem

    written = {each["id"]: each["calls"] for each in read("A.notes.repaired.jsonl")}
    messages = [Message(each, written[each["id"]]) for each in read("A.jsonl")]
    messages = messages[:60] if quick else messages
    counts = dict.fromkeys(("notes", "in force", "false", "stops", "stopped", "near", "near stopped"), 0)
    elsewhere = dict.fromkeys(("calls", "stopped"), 0)
    joined = dict.fromkeys(("calls", "stopped"), 0)
    seconds: list[float] = []
    for message in messages:
        async with AsyncToolMem(":memory:") as mem:
            for call in message.calls:
                if call["name"] != "note_demand":
                    continue
                began = time.perf_counter()
                noted = await mem.note_demand(
                    **call["arguments"],
                    user_message=message.text,
                    tools_available=message.tools,
                    conversation_id="here",
                )
                seconds.append(time.perf_counter() - began)
                if message.kind == "standing":
                    counts["notes"] += 1
                    counts["in force"] += noted.outcome == "kept"
                elif message.kind != "session":
                    counts["false"] += noted.outcome == "kept"

            async def stops(call: Mapping[str, Any], mem: AsyncToolMem = mem, message: Message = message) -> bool:
                decided = await mem.check_tool_call(
                    call["tool"], call["arguments"], conversation_id="here", tools=message.tools
                )
                return decided.stops

            of_standing = message.kind == "standing"
            for call in message.labelled_calls("stops"):
                stopped = await stops(call)
                counts["stops"] += of_standing
                counts["stopped"] += of_standing and stopped
                for other in _in_other_agents(call) if of_standing and stopped else ():
                    elsewhere["calls"] += 1
                    elsewhere["stopped"] += await stops(other)
            for call in message.labelled_calls("passes"):
                counts["near"] += 1
                counts["near stopped"] += await stops(call)
            for call in [each async for each in _joined(message, stops)]:
                joined["calls"] += 1
                joined["stopped"] += await stops(call)
    lifted = await taken_back(messages)
    hooks = through_hooks(messages)
    basis = f"{len(messages)} messages of one author, notes of one model"
    return [
        Figure(
            "notes of standing demands in force",
            counts["in force"],
            "notes",
            counts["notes"],
            at_least=True,
            basis=f"of {counts['notes']}",
        ),
        Figure(
            "forbidden calls stopped",
            counts["stopped"],
            "calls",
            124,
            at_least=True,
            basis=f"of {counts['stops']}; {basis}",
        ),
        Figure("near calls stopped", counts["near stopped"], "calls", 5, basis=f"of {counts['near']}"),
        Figure("notes in force of other messages", counts["false"], "notes", 1),
        Figure(
            "the same calls by other agents' tools, stopped",
            elsewhere["stopped"],
            "calls",
            elsewhere["calls"],
            at_least=True,
            basis=f"of {elsewhere['calls']}",
        ),
        Figure(
            "stopped calls joined to one that passes, stopped",
            joined["stopped"],
            "calls",
            joined["calls"],
            at_least=True,
            basis=f"of {joined['calls']}",
        ),
        Figure(
            "withdrawals that name the right rule",
            lifted["right"],
            "messages",
            lifted["withdrawals"],
            at_least=True,
            basis=f"of {lifted['withdrawals']}, {lifted['lifted']} of them lifted at once",
        ),
        Figure("rules lifted by other messages", lifted["wrong"], "rules", 0, basis=f"of {lifted['others']} messages"),
        Figure(
            "the same notes through the hooks of Claude Code, in force",
            hooks["in force"],
            "notes",
            hooks["notes"],
            at_least=True,
            basis=f"of {hooks['notes']}",
        ),
        Figure(
            "forbidden calls stopped by these hooks",
            hooks["stopped"],
            "calls",
            135,
            at_least=True,
            basis=f"of {hooks['stops']}",
        ),
        Figure("near calls stopped by these hooks", hooks["near stopped"], "calls", 5, basis=f"of {hooks['near']}"),
        Figure(
            "a note, verified and kept",
            median(seconds) * 1000,
            "ms",
            20,
            basis=f"median of {len(seconds)}, store in memory",
        ),
    ]


async def read_offline() -> list[Figure]:
    """The same messages, read without a model: what is kept, and what is stopped by it."""
    from toolmem import AsyncToolMem

    counts = dict.fromkeys(("standing", "kept", "others", "false", "stops", "stopped", "near", "near stopped"), 0)
    for message in (Message(each, ()) for each in read("A.jsonl")):
        async with AsyncToolMem(":memory:") as mem:
            captured = await mem.capture_rules(message.text, tools=message.tools, session_id="here")
            if message.kind != "session":
                total, kept = ("standing", "kept") if message.kind == "standing" else ("others", "false")
                counts[total] += 1
                counts[kept] += bool(captured.rules)
            for of, total, stopped in (("stops", "stops", "stopped"), ("passes", "near", "near stopped")):
                for call in message.labelled_calls(of):
                    decided = await mem.check_tool_call(call["tool"], call["arguments"], tools=message.tools)
                    counts[total] += 1
                    counts[stopped] += decided.stops
    of = "of {} of one author, without any model"
    return [
        Figure("standing demands kept offline", counts["kept"], "messages", basis=of.format(counts["standing"])),
        Figure("other messages kept offline", counts["false"], "messages", basis=of.format(counts["others"])),
        Figure("forbidden calls stopped offline", counts["stopped"], "calls", basis=of.format(counts["stops"])),
        Figure("near calls stopped offline", counts["near stopped"], "calls", 0, basis=of.format(counts["near"])),
    ]


DAY = Path(__file__).with_name("ordinary_day.json")


async def ordinary_day() -> list[Figure]:
    """20 notes in force, 100 calls of an ordinary day, and 40 that only name what is forbidden."""
    from toolmem import AsyncToolMem

    day = json.loads(DAY.read_text(encoding="utf-8"))
    figures = []
    async with AsyncToolMem(":memory:") as mem:
        for number, note in enumerate(day["notes"]):
            heard = {"user_message": note["quote"], "conversation_id": f"c{number}"}
            noted = await mem.note_demand(**note, **heard, tools_available=DAY_TOOLS)
            assert (noted.outcome, noted.why) == ("kept", ""), (note["quote"], noted)
        for named, calls in (
            ("calls of an ordinary day", day["calls"]),
            ("calls that only name it", day["only_named"]),
        ):
            stopped = []
            for call in calls:
                decided = await mem.check_tool_call(call["tool"], call["arguments"], conversation_id="day")
                if decided.stops:
                    stopped.append((call, decided.reason))
            for call, reason in stopped:
                print(f"stopped: {json.dumps(call)[:200]}: {reason[:160]}", file=sys.stderr)
            basis = f"of {len(calls)} of one author, {len(day['notes'])} notes in force"
            figures.append(Figure(f"{named}, stopped", len(stopped), "calls", 0, basis=basis))
    return figures


DAY_TOOLS = ["Bash", "Edit", "Write", "Read", "Grep", "Glob", "WebFetch", "send_email", "slack_post", "run_sql"]
NOTE: Mapping[str, Any] = {
    "quote": "--no-verify is cheating",
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "when": [{"command": r"^git (commit|push|merge)\b", "word": "--no-verify"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m wip"}}],
}


async def on_a_full_store(quick: bool) -> list[Figure]:
    """A note on a store of 1,000 rules, without calls and with 500 to be held against."""
    from toolmem import AsyncToolMem, ToolCall

    with TemporaryDirectory(prefix="toolmem-") as folder:
        async with AsyncToolMem(f"{folder}/memory.db") as mem:
            for number in range(100 if quick else 1000):
                await mem.rules.put(f"tool_{number % 200}", f"Never use it for case {number}.", source="user_explicit")
            bare = await _seconds_of_notes(mem)
            calls = [ToolCall("Bash", {"command": f"git commit -m 'step {n}' && make"}, "done") for n in range(500)]
            await mem.add(calls)
            replayed = await _seconds_of_notes(mem)
    basis = "processor time, median of 9; 1,000 rules of 200 tools, SQLite file"
    return [
        Figure("a note on a full store", bare * 1000, "ms", 20, basis=basis),
        Figure("the same, held against the newest 500 calls", replayed * 1000, "ms", 150, basis=basis),
    ]


async def _seconds_of_notes(mem: Any) -> float:
    """Processor time of all threads: of this machine's clock others have their share."""
    seconds = []
    for number in range(9):
        said = f"{NOTE['quote']}, and I said so {number} times"
        began = time.process_time()
        noted = await mem.note_demand(
            **{**NOTE, "quote": said}, user_message=said, tools_available=["Bash"], conversation_id=f"c{number}"
        )
        seconds.append(time.process_time() - began)
        assert noted.outcome == "kept", noted
        for rule in noted.rules:
            await mem.rules.delete(rule.tool_name, rule.id)
    return median(seconds)


# ---------------------------------------------------------------- through an agent's hooks


def through_hooks(messages: Sequence[Message]) -> dict[str, int]:
    """Each message of a standing demand in a session of its own: prompt, notes, then the calls, as events of hooks.

    Tools that are none of Claude Code's stand there as those of an MCP server.
    """
    counts = dict.fromkeys(("notes", "in force", "stops", "stopped", "near", "near stopped"), 0)
    for message in messages:
        if message.kind != "standing":
            continue
        with (
            TemporaryDirectory() as home,
            mock.patch.dict(os.environ, {"HOME": home, "XDG_STATE_HOME": f"{home}/state"}),
        ):
            agent = _ClaudeCode(home)
            agent.tell("UserPromptSubmit", prompt=message.text, prompt_id="p1")
            for call in message.calls:
                if call["name"] == "note_demand":
                    counts["notes"] += 1
                    counts["in force"] += agent.notes(call["arguments"])
            for of, total, stopped in (("stops", "stops", "stopped"), ("passes", "near", "near stopped")):
                for call in message.labelled_calls(of):
                    counts[total] += 1
                    counts[stopped] += agent.asks(call["tool"], call["arguments"]) in ("deny", "ask")
    return counts


class _ClaudeCode:
    """What Claude Code tells its hooks, in this process."""

    def __init__(self, home: str) -> None:
        self._base = {"session_id": "s1", "cwd": home, "transcript_path": ""}
        self._number = 0

    def tell(self, event: str, **more: Any) -> dict[str, Any]:
        from toolmem.hosts.hook_process import answered

        payload = json.dumps({**self._base, "hook_event_name": event, **more}).encode()
        told = answered(["claude-code"], io.BytesIO(payload), os.environ)
        return json.loads(told).get("hookSpecificOutput", {}) if told else {}

    def asks(self, tool: str, given: Any) -> str:
        """What becomes of a call; "" where it runs as ever."""
        self._number += 1
        call = {"tool_name": _in_claude_code(tool), "tool_input": given, "tool_use_id": f"toolu_{self._number}"}
        return str(self.tell("PreToolUse", **call).get("permissionDecision", ""))

    def notes(self, note: Mapping[str, Any]) -> bool:
        """Is it in force?"""
        from toolmem.hosts.kept_prompts import PromptsFile
        from toolmem.hosts.note_command import command_line

        text = json.dumps(_renamed(note), ensure_ascii=False)
        self.asks("Bash", {"command": f"{command_line()} <<'TOOLMEM'\n{text}\nTOOLMEM\n"})
        heard = PromptsFile()
        outcome = heard.outcome_of(text) or {}
        heard.close()
        return outcome.get("outcome") == "kept"


def _in_claude_code(tool: str) -> str:
    from toolmem.hosts.claude_code import HOST

    return tool if tool in HOST.tools or tool.startswith("mcp__") else f"mcp__app__{tool}"


def _renamed(note: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: _in_claude_code(name) for name in note.get("tools", ())}
    renamed = {**note, "tools": list(names.values())}
    for field in {"stops", "passes", "when", "unless"} & set(note):
        renamed[field] = [_with_names(each, names) for each in note[field]]
    return renamed


def _with_names(each: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    tool = str(each.get("tool", ""))
    for name, shown in names.items():
        tool = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", shown, tool)
    return {**each, "tool": tool} if tool else dict(each)


def _in_other_agents(call: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if call["tool"] == "Bash":
        for names in ELSEWHERE.values():
            tool, parameter = names["shell"]
            yield {"tool": tool, "arguments": {parameter: call["arguments"]["command"]}}


async def _joined(message: Message, stops: Any) -> Any:
    """Each command that is stopped, joined to one that is let through, in both orders."""
    shell = [[each for each in message.labelled_calls(of) if each["tool"] == "Bash"] for of in ("stops", "passes")]
    for one in shell[0]:
        for other in shell[1]:
            if await stops(one) and not await stops(other):
                for first, second in ((one, other), (other, one)):
                    command = f"{first['arguments']['command']} && {second['arguments']['command']}"
                    yield {"tool": "Bash", "arguments": {"command": command}}


async def taken_back(messages: Sequence[Message]) -> dict[str, int]:
    """All notes in one store, and of each withdrawal what it takes back; then every message as a lift's quote."""
    from toolmem import AsyncToolMem

    found = dict.fromkeys(("withdrawals", "right", "lifted", "others", "wrong"), 0)
    async with AsyncToolMem(":memory:") as mem:
        for number, message in enumerate(messages):
            given = {"user_message": message.text, "tools_available": message.tools, "conversation_id": str(number)}
            for call in message.calls:
                if call["name"] == "note_demand":
                    await mem.note_demand(**call["arguments"], **given)
            if message.kind == "withdrawal":
                tool = message.labelled["tools"][0]["name"]
                await mem.rules.put(tool, message.labelled["withdraws"], priority="critical", source="user_explicit")
        targets = [rule for message in messages[:40] for rule in await _own_rules(mem, message)]
        for number, message in enumerate(messages):
            if message.kind != "withdrawal" and targets:
                found["others"] += 1
                told = await mem.lift_demand(message.text, targets[number % len(targets)], user_message=message.text)
                found["wrong"] += told.outcome == "kept"
        for message in messages:
            for call in message.calls:
                if call["name"] == "lift_demand" and message.kind == "withdrawal":
                    found["withdrawals"] += 1
                    told = await mem.lift_demand(**call["arguments"], user_message=message.text)
                    found["right"] += any(rule.rule == message.labelled["withdraws"] for rule in told.rules)
                    found["lifted"] += told.outcome == "kept"
    return found


async def _own_rules(mem: Any, message: Message) -> list[str]:
    names = [tool["name"] for tool in message.labelled["tools"]]
    return [rule.id for name in names for rule in await mem.rules.list(name)]


def main() -> None:
    given = arguments(__doc__)
    if not SHARED.is_dir():
        print(f"no labelled messages here: {SHARED.name} is not beside the project", file=sys.stderr)
        return
    parts = (measure(given.quick), read_offline(), ordinary_day(), on_a_full_store(given.quick))
    show([figure for part in parts for figure in asyncio.run(part)], given.json)


if __name__ == "__main__":
    main()
