"""Writers in several processes: ids stay unique, and `created_at` stays true."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from toolmem.errors import RequestError
from toolmem.flow.runner import SystemClock
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.rule_store import RuleStore
from toolmem.store.sqlite import SqliteStore

WRITERS = 4
OPERATIONS = 250
TOOLS = ("send_email", "SEND_EMAIL", "slack")
TEXTS = ("never email Sarah", "Never email Sarah.", "ask first")
OWN_IDS = ("one", "two")


def rule_store(path: Path) -> tuple[SqliteStore, RuleStore]:
    clock = SystemClock()
    store = SqliteStore(path, clock=clock, embedder=None, synchronous="NORMAL")
    return store, RuleStore(store, "team", clock=clock)


def micros() -> int:
    return time.time_ns() // 1000


def in_micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


async def write(path: Path, seed: int) -> list[dict[str, Any]]:
    """Random puts, deletes and captures; answers what was done, when, and to which id."""
    chance = random.Random(seed)
    log: list[dict[str, Any]] = []
    seen = list(OWN_IDS)
    store, rules = rule_store(path)
    async with store:
        for _ in range(OPERATIONS):
            tool, text = chance.choice(TOOLS), chance.choice(TEXTS)
            kind = chance.choice(("put", "put with id", "capture", "delete", "delete"))
            begun, done = micros(), None
            try:
                if kind == "delete":
                    rule_id = chance.choice(seen)
                    if await rules.delete_rule(tool, rule_id):
                        log.append({"kind": "delete", "id": rule_id, "from": begun, "to": micros()})
                    continue
                if kind == "capture":
                    done = await rules.capture_rule(RuleDraft(tool, text, priority="critical"))
                else:
                    done = await rules.put_rule(tool, text, id=chance.choice(seen) if kind == "put with id" else "")
            except RequestError as error:
                if "belongs to tool" not in str(error):
                    raise
            if done is not None:
                created = in_micros(done.created_at)
                log.append({"kind": "write", "id": done.id, "from": begun, "to": micros(), "created": created})
                seen.append(done.id)
    return log


def run_writer(path: str, seed: int) -> None:
    log = asyncio.run(write(Path(path), seed))
    Path(path).with_suffix(f".{seed}.json").write_text(json.dumps(log))


async def watch(path: Path, writers: list[Any]) -> int:
    """Look at all rules of one moment, again and again, until the writers are done; answers how often."""
    looks = 0
    store, rules = rule_store(path)
    async with store:
        while any(writer.is_alive() for writer in writers):
            found, damaged = await rules.all_rules()
            ids = [rule.id for rule in found]
            assert len(ids) == len(set(ids)), ids
            assert not damaged
            looks += 1
            await asyncio.sleep(0.005)
    return looks


async def test_any_interleaving_of_writers_keeps_ids_unique_and_created_at_true(tmp_path):
    path = tmp_path / "memory.db"
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=run_writer, args=(str(path), seed)) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()
    assert await watch(path, writers) > 10
    for writer in writers:
        writer.join(300)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS

    log = [each for seed in range(WRITERS) for each in json.loads((tmp_path / f"memory.{seed}.json").read_text())]
    store, rules = rule_store(path)
    async with store:
        found, _ = await rules.all_rules()
    assert found
    deletions = [each for each in log if each["kind"] == "delete"]
    writes = [each for each in log if each["kind"] == "write"]
    assert len(deletions) > 20
    ends = max(each["to"] for each in log) + 1
    left = [{"id": rule.id, "from": ends, "created": in_micros(rule.created_at)} for rule in found]
    for seen in [*writes, *left]:  # each rule as it was seen, at the latest at this moment
        own = [each for each in deletions if each["id"] == seen["id"] and each["to"] < seen["from"]]
        assert all(each["from"] <= seen["created"] for each in own), "older than its deletion"
        own = [each for each in writes if each["id"] == seen["id"]]
        assert any(each["from"] <= seen["created"] <= each["to"] for each in own), "created when nobody wrote it"


async def test_writers_of_one_id_at_once_keep_its_created_at(tmp_path):
    store, rules = rule_store(tmp_path / "memory.db")
    async with store:
        first = await rules.put_rule("t", "text 0", id="one", priority="critical")
        await asyncio.gather(*(rules.put_rule("t", f"text {n}", id="one") for n in range(20)))
        (left,) = await rules.list_rules("t")
        assert (left.id, left.created_at, left.priority) == ("one", first.created_at, "critical")


async def test_the_same_rule_put_at_once_is_one_rule(tmp_path):
    store, rules = rule_store(tmp_path / "memory.db")
    async with store:
        put = await asyncio.gather(*(rules.put_rule("t", "never email Sarah") for _ in range(10)))
        assert len({rule.id for rule in put}) == 1
        assert len({rule.created_at for rule in put}) == 1


async def test_a_rule_deleted_and_put_again_between_reading_and_writing_is_as_young_as_it_is(tmp_path, monkeypatch):
    store, rules = rule_store(tmp_path / "memory.db")
    async with store:
        await rules.put_rule("t", "old", id="one")
        original, done = rules.records.stored, []

        async def stored_then_others(namespace: str) -> Any:
            stored = await original(namespace)
            if not done:
                done.append(True)
                await rules.delete_rule("t", "one")
                done.append((await rules.put_rule("t", "young", id="one")).created_at)
            return stored

        monkeypatch.setattr(rules.records, "stored", stored_then_others)
        changed = await rules.put_rule("t", "changed", id="one")
        monkeypatch.undo()
        kept = await rules.get_rule("t", "one")
        assert kept == changed
        assert kept.created_at >= done[1]
