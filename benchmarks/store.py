"""What the embedded store costs: adding a call, retrieving by name, the idle summary's read, vector search.

    python benchmarks/store.py [--quick] [--json FILE]

Prints a table and writes JSON. Times are medians inside the process, from the await to its answer. Bytes are those of
one write transaction in the write-ahead log; moving the log into the file (the checkpoint) happens after a write was
acknowledged and is reported apart. The peer is ReMe's tool memory, as measured for the design.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import numpy as np
from tables import Figure, arguments, median_ms, show

from toolmem.models import Claim, Guidance, JudgeIdentity, ToolCallResult, Verdict
from toolmem.protocols import EmbedderIdentity
from toolmem.store.sqlite import SqliteStore, documents
from toolmem.store.sqlite.connection import PAGE_BYTES, open_writer, write_transaction
from toolmem.stored import Document
from toolmem.testing.clock import ManualClock

W = "benchmark"
KEEP = 100
JUDGE = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="0123456789ab")
START = datetime(2026, 1, 1, tzinfo=UTC)
FRAME_BYTES = PAGE_BYTES + 24  # a page in the log, with its header


def tool_call(number: int, tool: str) -> ToolCallResult:
    """About 700 bytes of row, as many recorded calls have."""
    verdict = Verdict(
        summary=f"Searched for question {number}.",
        evaluation="The call ran and answered; usefulness not judged. Evidence: no error in the output.",
        score=1.0,
        execution_failed=False,
        judge=JUDGE,
    )
    return ToolCallResult(
        tool_name=tool,
        input={"query": f"question {number}", "limit": number % 10},
        output=f"[{number}] " + "an answer of some length " * (8 + number % 15),
        success=True,
        create_time=START + timedelta(seconds=number),
        time_cost=0.25,
        token_cost=40,
        id=f"call-{number}",
        metadata={"conversation_id": f"conversation-{number // 20}"},
    ).judged(verdict)


def written_guidance(tool: str, covered: list[int]) -> Guidance:
    ids = tuple(f"call-{n}" for n in range(8))
    claims = [Claim(text=f"{tool}: value {n} succeeded in {n} of 30 calls", k=n, n=30, call_ids=ids) for n in range(12)]
    text = "\n".join(claim.text for claim in claims)
    return Guidance(text=text, claims=claims, covered=covered, author="offline/data_driven", prompt_version="1")


def open_store(path: Path, embedder: EmbedderIdentity | None = None) -> SqliteStore:
    return SqliteStore(path, clock=ManualClock(), embedder=embedder)


async def fill(store: SqliteStore, tools: range, calls: int) -> None:
    for n in tools:
        tool = f"tool {n}"
        await store.append_calls(W, tool, [tool_call(i, tool) for i in range(calls)], KEEP)
        guidance = written_guidance(tool, list(range(1, calls + 1)))
        await store.put_guidance(W, tool, guidance, document=Document(guidance.text), guidance_version=0)


# -- one call added


async def measure_adding(path: Path, store: SqliteStore, tools: int, rounds: int) -> list[Figure]:
    chance = random.Random(1)
    number = 1_000_000

    async def add(_: int) -> None:
        nonlocal number
        number += 1
        tool = f"tool {chance.randrange(tools)}"
        await store.append_calls(W, tool, [tool_call(number, tool)], KEEP)

    milliseconds = await median_ms(rounds, add)
    disk = bare_write_ms(path.with_name("bare"), rounds)
    log = apsw.Connection(str(path))
    log.set_busy_timeout(10_000)
    log.execute("SELECT count(*) FROM workspaces").fetchall()
    log.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
    frames = []
    for n in range(rounds):
        await add(n)
        # All that the log holds is moved into the file, so the next write begins the log anew.
        frames.append(log.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0])
    kilobytes = statistics.median(frames) * FRAME_BYTES / 1000
    for n in range(60):
        await add(n)
    start = time.perf_counter()
    pages = log.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0]
    checkpoint = (time.perf_counter() - start) * 1000
    log.close()
    case = f"add 1 call, {tools:,} tools x {KEEP} calls"
    peer = {1: ("70 ms", "85 kB"), 1000: ("3690 ms", "168700 kB")}.get(tools, ("", ""))
    basis = f"median of {rounds}"
    return [
        Figure(f"{case}: time", milliseconds, "ms", 0.8, peer[0], basis),
        Figure(f"{case}: bytes in the transaction", kilobytes, "kB", 24, peer[1], basis),
        Figure(f"{case}: the disk alone, 16 kB written and synced", disk, "ms", None, "", basis),
        Figure(f"{case}: checkpoint after 60 adds", checkpoint, "ms", None, "", f"{pages} pages of {PAGE_BYTES} bytes"),
    ]


def bare_write_ms(path: Path, rounds: int) -> float:
    """What the disk takes for the same amount at that moment: an addition cannot be quicker than this."""
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(rounds):
            start = time.perf_counter()
            file.write(b"x" * 16_384)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


# -- reading


async def measure_reading(store: SqliteStore, tools: int, rounds: int) -> list[Figure]:
    chance = random.Random(2)
    retrieve = await median_ms(rounds, lambda _: store.memories(W, [f"tool {chance.randrange(tools)}"]))
    fifty = [f"tool {n * tools // 50}" for n in range(50)]
    first = await median_ms(1, lambda _: store.records(W, fifty))
    idle = await median_ms(rounds, lambda _: store.records(W, fifty))
    basis = f"median of {rounds}"
    return [
        Figure(f"retrieve 1 tool by name among {tools:,}", retrieve, "ms", 1, "1500 ms (5000 tools)", basis),
        Figure("records of 50 tools (the idle summary's read)", idle, "ms", 5, "55 requests, 2.2 MB", basis),
        Figure("records of 50 tools, guidance not read before", first, "ms", None, "", "once"),
    ]


# -- vectors


def fill_vectors(path: Path, matrix: np.ndarray, embedder: EmbedderIdentity) -> None:
    """Straight into the tables, thousands per transaction: this part is not what is measured."""
    db = open_writer(str(path), "NORMAL", 30)
    for start in range(0, len(matrix), 5000):
        with write_transaction(db):
            if not start:
                db.execute("INSERT INTO workspaces (name) VALUES (?)", (W,))
            for i, row in enumerate(matrix[start : start + 5000], start):
                documents.write(db, 1, documents.GUIDANCE, "", f"tool {i}", Document(f"tool {i}", row), 0, embedder)
    db.close()


async def measure_vectors(folder: Path, count: int, dimension: int, rounds: int) -> list[Figure]:
    generator = np.random.default_rng(3)
    matrix = generator.normal(size=(count, dimension)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    queries = generator.normal(size=(rounds, dimension)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    embedder = EmbedderIdentity("benchmark", "random", dimension)
    fill_vectors(folder / "vectors.db", matrix, embedder)
    async with open_store(folder / "vectors.db", embedder) as store:
        load = await median_ms(1, lambda _: store.search(W, "", queries[0], 10))
        # Alternately, so that both see the same machine.
        bare, ours = [], []
        for query in queries:
            start = time.perf_counter()
            products = matrix @ query
            np.argpartition(products, -10)[-10:]
            middle = time.perf_counter()
            hits = await store.search(W, "", query, 10)
            ours.append(time.perf_counter() - middle)
            bare.append(middle - start)
            assert hits[0].key == f"tool {products.argmax()}"
            assert abs((hits[-1].similarity or 0.0) - np.sort(products)[-10]) < 1e-5
    ratio = statistics.median(ours) / statistics.median(bare)
    case = f"vector search {count:,} x {dimension}"
    basis = f"median of {rounds}"
    return [
        Figure(f"{case}: store over numpy", ratio, "x", 1.5, "", basis),
        Figure(f"{case}: store", statistics.median(ours) * 1000, "ms", None, "", basis),
        Figure(f"{case}: numpy product and top 10", statistics.median(bare) * 1000, "ms", None, "", basis),
        Figure(f"{case}: first search, loads the vectors", load, "ms", None, "", "once"),
    ]


# -- the whole


async def measure(quick: bool) -> list[Figure]:
    many, most, vectors, rounds = (100, 500, 10_000, 100) if quick else (1000, 5000, 100_000, 400)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tools in (1, many):
            path = folder / f"{tools}.db"
            async with open_store(path) as store:
                await fill(store, range(tools), KEEP)
                figures += await measure_adding(path, store, tools, rounds)
                if tools == many:
                    await fill(store, range(many, most), KEEP)
                    figures += await measure_reading(store, most, rounds)
        figures += await measure_vectors(folder, vectors, 384, min(rounds, 100))
    return figures


def main() -> None:
    options = arguments(__doc__)
    show(asyncio.run(measure(options.quick)), options.json)


if __name__ == "__main__":
    main()
