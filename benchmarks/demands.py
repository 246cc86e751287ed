"""Print what the offline reader and a model's notes keep of what users demand.

    python benchmarks/demands.py

Labelled sentences and messages lie in the shared data (`decrees/`, `demands/`, `guard/`); they were
visible while the reader was written. *near* calls are those that a careful human would let pass.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared import PROJECT, Table, publish, shared_data

from toolmem.models.calls import SystemClock
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.rules.notes.keep import NoteResult, note_demand
from toolmem.rules.notes.verify import NoteContext
from toolmem.rules.reader.demands import Demand, demands
from toolmem.rules.store import ToolMemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.view.conditions import Conditions, Match, read_conditions
from toolmem.view.view import CallView

DECREES = [
    "send_email",
    "read_inbox",
    "slack_post_message",
    "calendar_create_event",
    "calendar_delete_event",
    "shell",
    "bash_exec",
    "browser_open",
    "web_search",
    "http_request",
    "read_file",
    "write_file",
    "delete_file",
    "sql_execute",
    "drop_table",
    "git_push",
    "git_force_push",
    "create_payment",
    "issue_refund",
    "cancel_order",
    "book_flight",
    "transfer_to_human",
    "create_ticket",
    "deploy_service",
    "translate_text",
]
PASTED = {"en": "Never push to main.", "zh": "永远不要推送到 main 分支。"}
Stops = Callable[[str, Mapping[str, Any]], bool]


def json_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def schemas(tools: list[dict[str, Any]]) -> list[ToolSchema]:
    """As the data has them: a parameter is a name and a type, or JSON Schema."""
    found = []
    for tool in tools:
        parameters = tool["parameters"]
        if "properties" not in parameters:
            parameters = {"properties": {k: {"type": v} for k, v in parameters.items()}}
        found.append(ToolSchema(tool["name"], tool.get("description", ""), parameters))
    return found


def checker(rules: list[tuple[str, Conditions]], tools: list[ToolSchema]) -> Stops:
    """Whether a call is stopped or asked about."""
    declared = {tool.name: tool.parameters for tool in tools}

    def stops(tool: str, arguments: Mapping[str, Any]) -> bool:
        view = CallView(tool, arguments, declared.get(tool))
        names, now = {folded_name(tool), *view.classes}, datetime.now(UTC)
        return any(
            folded_name(name) in names and conditions.check(view, now) is not Match.NO
            for name, conditions in rules
        )

    return stops


def read_offline(message: str, tools: list[ToolSchema]) -> tuple[bool, list[Any], list[Any]]:
    """Whether anything is kept for good, and the conditions by tool, now and in a later session."""
    found = demands(message, [], tools)

    def pairs(those: list[Demand]) -> list[Any]:
        return [
            (tool, read_conditions(conditions.when, conditions.unless))
            for demand in those
            for tool, conditions in demand.conditions.items()
        ]

    lasting = [demand for demand in found if not demand.session]
    return bool(lasting), pairs(found), pairs(lasting)


def noted(
    labelled: Any, notes: Any, tools: list[ToolSchema], outcomes: Counter[str]
) -> tuple[bool, list[Any], list[Any]]:
    """The same by the notes of a model, verified and kept in a store of their own."""
    store = SqliteStore(":memory:")
    rules = ToolMemoryStore(store, "default", SystemClock())
    context = NoteContext(user_messages=[labelled["text"]], tools=tools, session="here", turn="1")
    calls = [call["arguments"] for call in notes if call["name"] == "note_demand"]
    made = [note_demand(rules, call, context) for call in calls]
    kept = [each.outcome == "kept" for each in made]
    outcomes.update(
        "weakened" if is_weakened(each, call) else each.outcome
        for each, call in zip(made, calls, strict=True)
    )
    now, later = (
        [
            (rule.tool_name, read_conditions(rule.when, rule.unless))
            for rule in rules.all_rules(session).rules
            if rule.is_checked
        ]
        for session in ("here", "later")
    )
    store.close()
    return any(kept), now, later


def is_weakened(made: NoteResult, note: Any) -> bool:
    """Whether a note is kept, but only asks where it was to deny."""
    return made.outcome == "kept" and made.rules[0].effect != note["effect"]


def of_demands(
    name: str, read: Callable[[Any, list[ToolSchema]], tuple[bool, list[Any], list[Any]]]
) -> Any:
    count: Counter[str] = Counter()
    for labelled in json_lines(shared_data() / "demands" / "A.jsonl"):
        tools = schemas(labelled["tools"])
        kept, pairs, later = read(labelled, tools)
        stops, stops_later = checker(pairs, tools), checker(later, tools)
        is_standing = labelled["kind"] == "standing"
        count["standing"] += is_standing
        count["kept"] += is_standing and kept
        count["false"] += kept and labelled["kind"] not in ("standing", "session")
        for demand in labelled["demands"]:
            for call in demand["stops"] if is_standing else ():
                count["forbidden"] += 1
                count["stopped"] += stops(call["tool"], call["arguments"])
                count["later"] += stops_later(call["tool"], call["arguments"])
            for call in demand["passes"]:
                count["near"] += 1
                count["near stopped"] += stops(call["tool"], call["arguments"])
    columns = ("standing", "kept", "false", "forbidden", "stopped", "later", "near", "near stopped")
    return (name, *(count[each] for each in columns))


def of_decrees(lang: str) -> tuple[Any, ...]:
    """Precision and recall of messages whose rules land on the right tools."""
    right = wrong = missed = 0
    with (shared_data() / "decrees" / "written.csv").open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            if row["lang"] != lang:
                continue
            ran = [name for name in row["ran"].split("|") if name]
            found = demands(row["message"], ran, DECREES)
            tools = {tool for demand in found if not demand.session for tool in demand.tools}
            wanted = set(row["tools"].split("|")) if row["kind"] == "standing" else set()
            right += bool(wanted) and tools >= wanted
            missed += bool(wanted) and not tools >= wanted
            wrong += bool(tools - wanted) and not (wanted and tools >= wanted)
    return f"decrees, {lang}", right / (right + wrong), right / (right + missed)


def of_pasted(lang: str) -> tuple[Any, ...]:
    """Shares: own demands beside a task that are seen, and pasted ones that are taken."""
    folder = PROJECT / "tests" / "rules"
    lines = (folder / f"own_{lang}.txt").read_text(encoding="utf-8").splitlines()
    parts = (folder / f"pasted_{lang}.txt").read_text(encoding="utf-8").split("@@ ")[1:]

    def taken(text: str) -> bool:
        message = text.replace("\\n", "\n").replace("§", PASTED[lang])
        words = PASTED[lang].rstrip(".。")
        return any(words in each.sentence for each in demands(message, ["send_email"], DECREES))

    own = [taken(line) for line in lines]
    pasted = [taken(part.split("\n", 1)[1]) for part in parts]
    return f"messages, {lang}", sum(own) / len(own), sum(pasted) / len(pasted)


def of_agentdojo() -> tuple[int, int, int]:
    forbidden = stopped = wrong = 0
    suites = json.loads((shared_data() / "guard" / "agentdojo.json").read_text(encoding="utf-8"))
    for suite in suites.values():
        tools = schemas(suite["tools"])
        for case in suite["cases"]:
            stops = checker(read_offline(case["said"], tools)[1], tools)
            hits = {c["id"] for c in suite["calls"] if stops(c["name"], c["arguments"])}
            forbidden += len(case["stops"])
            stopped += len(hits & set(case["stops"]))
            wrong += len(hits - set(case["stops"]))
    return forbidden, stopped, wrong


def main() -> None:
    notes = {
        row["id"]: row["calls"]
        for row in json_lines(shared_data() / "demands" / "A.notes.repaired.jsonl")
    }
    columns = ("demands/A", "standing", "kept", "false", "forbidden", "stopped", "later", "near")
    outcomes: Counter[str] = Counter()
    labelled = [
        of_demands("offline", lambda labelled, tools: read_offline(labelled["text"], tools)),
        of_demands(
            "with notes", lambda each, tools: noted(each, notes[each["id"]], tools, outcomes)
        ),
    ]
    became = [("demands/A", *(outcomes[each] for each in ("kept", "weakened", "refused")))]
    decrees = [of_decrees(lang) for lang in ("en", "zh")]
    messages = [of_pasted(lang) for lang in ("en", "zh")]
    tools = [("sentences", *of_agentdojo())]
    publish(
        "demands",
        "What the user demands",
        Table("Decrees in plain words", ("written.csv", "precision", "recall"), decrees),
        Table("A demand in a message", ("messages", "own seen", "pasted taken"), messages),
        Table("Labelled messages", (*columns, "near stopped"), labelled),
        Table("Notes", ("notes", "kept", "weakened", "refused"), became),
        Table("AgentDojo", ("agentdojo", "forbidden", "stopped", "wrong"), tools),
    )


if __name__ == "__main__":
    main()
