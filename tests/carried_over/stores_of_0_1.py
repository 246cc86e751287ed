"""Made the data of this folder, with version 0.1 of toolmem (commit 72e6850):

PYTHONPATH=CHECKOUT_OF_0_1 python stores_of_0_1.py FOLDER ELASTICSEARCH_URL

`ask` is what a program of 0.1 asks its store; the tests run it as it stands, and `missing` in what has come.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

from toolmem import ToolMemApp
from toolmem.flow.clock import SystemClock
from toolmem.rules.effectiveness import ToolEffectivenessTracker
from toolmem.rules.general_memory import GeneralMemory
from toolmem.session import AgentSession

REFUSED = "Error: limit is at most 10"
CALLS: list[dict[str, Any]] = [
    {"tool_name": "search", "input": {"query": "rain", "limit": 50}, "output": REFUSED, "id": "c1"},
    {"tool_name": "search", "input": {"query": "rain", "limit": 10}, "output": '["umbrella"]', "id": "c2"},
    {"tool_name": "search", "input": {"query": "snow", "limit": 99}, "output": REFUSED, "id": "c3"},
    {"tool_name": "search", "input": {"query": "snow", "limit": 5}, "output": '["boots"]', "success": True, "id": "c4"},
    {
        "tool_name": "send_email",
        "input": {"to": "bob@example.com"},
        "output": "sent",
        "time_cost": 0.4,
        "token_cost": 12,
    },
    {"tool_name": "天气", "input": {"city": "奥斯陆"}, "output": "下雨", "metadata": {"seen": [1, None]}},
]
MADE = [{"create_time": f"2026-03-01T12:00:0{number}Z"} | call for number, call in enumerate(CALLS)]
TOOLS = ["search", "send_email", "天气"]
UNPACED = [
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
]


async def fill(store: list[str], model: list[str]) -> None:
    async with ToolMemApp(overrides=[*UNPACED, *store]) as app:
        await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=MADE)
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=TOOLS)
        rules = await app.rule_store("team")
        await rules.put_rule("send_email", "never email Sarah", priority="critical", tags=["people"])
        await rules.put_rule("search", "ask for ten pages at most", priority="high")
        await rules.put_rule("天气", "用摄氏度")
        async with await AgentSession.start(app, workspace_id="team", tools=TOOLS) as session:
            await session.after_turn([{"role": "user", "content": "Never email Bob at bob@example.com."}])
            await session.after_turn([{"role": "user", "content": "Never email Carol at carol@example.com."}])
        (carols,) = [rule for rule in await rules.list_rules("send_email") if "Carol" in rule.rule]
        await rules.delete_rule("send_email", carols.id)
        failed = {"name": "search", "output": "Error: request timed out"}
        await app.run_flow("capture_tool_rules", workspace_id="team", tool_calls=[failed] * 3, user_message="go on")
        kept = GeneralMemory(await app.services.store_named(), "team", clock=SystemClock())
        await kept.remember("The office is closed on Fridays.", tags=["hours"])
    async with ToolMemApp(overrides=[*UNPACED, *store, *model]) as app:
        await app.run_flow("add_tool_call_result", workspace_id="paid", tool_call_results=MADE)
        await app.run_flow("summary_tool_memory", workspace_id="paid", tool_names=TOOLS)
        await app.run_flow("add_tool_call_result", workspace_id="paid", tool_call_results=[CALLS[4] | {"id": "late"}])


async def ask(store: list[str]) -> dict[str, Any]:
    from toolmem.llm.ledger import read_ledger, sum_up

    async with ToolMemApp(overrides=[*UNPACED, *store]) as app:
        found: dict[str, Any] = {}
        for workspace in ("team", "paid"):
            asked: dict[str, Any] = {"workspace_id": workspace, "tool_names": TOOLS, "include_calls": True}
            answer = await app.run_flow("retrieve_tool_memory", **asked)
            found[f"memories of {workspace}"] = answer.metadata["memory_list"]
        near = await app.run_flow("retrieve_tool_memory", workspace_id="paid", query="search", top_k=1)
        found["nearest"] = [memory["when_to_use"] for memory in near.metadata["memory_list"]]
        rules, damaged = await (await app.rule_store("team")).all_rules()
        found["rules"] = sorted((rule.model_dump(mode="json") for rule in rules), key=lambda rule: rule["id"])
        found["damaged"] = damaged
        found["prompt"] = (await app.run_flow("tool_rules_for_prompt", workspace_id="team")).answer
        kept = await app.services.store_named()
        found["remembered"] = [
            entry.model_dump(mode="json") for entry in await GeneralMemory(kept, "team", clock=SystemClock()).recall()
        ]
        found["effectiveness"] = [each.model_dump() for each in await ToolEffectivenessTracker(kept, "team").all()]
        found["ledger"] = [each.row() for each in sum_up(await read_ledger(kept, "paid"), ["op", "model", "outcome"])]
        again = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=TOOLS)
        found["summarized again"] = again.metadata["summarized"]
        async with await AgentSession.start(app, workspace_id="team", tools=TOOLS) as session:
            said = await session.after_turn([{"role": "user", "content": "Never email Carol at carol@example.com."}])
            found["captured though it was deleted"] = [rule.rule for rule in said.rules]
        return found


def documents(url: str, prefix: str) -> dict[str, Any]:
    """The indices with all that was written into them."""

    def get(path: str) -> Any:
        return json.load(urllib.request.urlopen(f"{url}/{path}"))

    urllib.request.urlopen(urllib.request.Request(f"{url}/{prefix}-*/_refresh", method="POST"))
    found = {}
    for index, made in get(f"{prefix}-*").items():
        hits = get(f"{index}/_search?size=1000")["hits"]["hits"]
        kept = {key: made["settings"]["index"][key] for key in ("number_of_shards", "number_of_replicas")}
        found[index] = {
            "aliases": made["aliases"],
            "mappings": made["mappings"],
            "settings": kept,
            "documents": [{key: hit[key] for key in ("_id", "_routing", "_source") if key in hit} for hit in hits],
        }
    return found


def missing(then: Any, now: Any, where: str = "") -> list[str]:
    """What was answered and is not any more. More may be answered; null may be left out (the changelog says so)."""
    if isinstance(then, dict) and isinstance(now, dict):
        told = {key: value for key, value in then.items() if value is not None}
        return [each for key, value in told.items() for each in missing(value, now.get(key), f"{where}/{key}")]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [each for number, (old, new) in pairs for each in missing(old, new, f"{where}/{number}")]
    return [] if then == now else [f"{where}: {then!r} became {now!r}"]


def toolmem(arguments: str) -> bytes:
    return subprocess.run([sys.executable, "-m", "toolmem", *arguments.split()], check=True, capture_output=True).stdout


def evaluate_something(folder: Path) -> None:
    """An evaluation and the run reports of another one, as their users keep them."""
    from toolmem import evaluate
    from toolmem.sample import load_records

    (folder / "calls.jsonl").write_text("".join(json.dumps(record) + "\n" for record in load_records()[:15]))
    evaluate(folder / "calls.jsonl", folder / "out").save(folder / "evaluation")
    toolmem("evaluate --limit 12 --out out --reports runs llm.default.backend=dry_run")
    (folder / "savings.json").write_bytes(toolmem("ledger --savings --reports runs --workspace evaluate --json"))
    with tarfile.open(folder / "evaluation.tar.gz", "w:gz") as archive:
        for name in ("evaluation", "runs", "savings.json"):
            archive.add(folder / name, name)


def main(folder: Path, url: str) -> None:
    from toolmem.store.elastic import indices
    from toolmem.testing.model_script import Script
    from toolmem.testing.model_server import ModelServer

    def write(name: str, content: bytes) -> None:
        (folder / name).write_bytes(gzip.compress(content, mtime=0))

    os.chdir(folder)
    evaluate_something(folder)
    left_out = dict(indices._NOT_IN_SOURCE)
    indices._NOT_IN_SOURCE.clear()  # so that what was written can be read back whole
    prefix, params = "toolmem-carried-over", "vector_store.default.params"
    stores = {
        "sqlite": [f"{params}.path='{folder / 'memory.db'}'"],
        "elasticsearch": [
            "vector_store.default.backend=elasticsearch",
            f"{params}.hosts={url}",
            f"{params}.index_prefix={prefix}",
            f"{params}.number_of_replicas=0",
        ],
    }
    with ModelServer(Script()) as server:
        model = ["llm.default.backend=dashscope", "llm.default.model_name=qwen-plus"]
        model += [f"llm.default.params.base_url={server.dashscope_url}", "llm.default.params.api_key=any-text"]
        for store in stores.values():
            asyncio.run(fill(store, model))
    write("sqlite.db.gz", (folder / "memory.db").read_bytes())
    made = documents(url, prefix)
    for index, each in made.items():
        if excluded := left_out.get(index.removeprefix(f"{prefix}-").removesuffix("-v1")):
            each["mappings"]["_source"] = {"excludes": excluded}
    write("elasticsearch.json.gz", json.dumps(made, ensure_ascii=False).encode())
    for name, store in stores.items():
        write(f"{name}_answers.json.gz", json.dumps(asyncio.run(ask(store)), ensure_ascii=False).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
