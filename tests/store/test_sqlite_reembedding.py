"""`reembed` of the embedded store is killed half way: nothing is lost, and the next run goes on where it stood."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from toolmem.protocols import EmbedderIdentity
from toolmem.store.sqlite import SqliteStore
from toolmem.stored import Document, Where
from toolmem.testing.clock import ManualClock

COUNT = 600  # texts, of which 256 are embedded at once
OLD, NEW, OTHER = (EmbedderIdentity(name, "m", 2) for name in ("old", "new", "other"))

KILLED = """
import asyncio, os, signal, sys
import numpy as np
from toolmem.protocols import EmbedderIdentity
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock

class Dying:
    identity, batches = EmbedderIdentity("new", "m", 2), 0
    async def embed(self, texts):
        self.batches += 1
        if self.batches == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones((len(texts), 2), dtype=np.float32)

async def main():
    async with SqliteStore(sys.argv[1], clock=ManualClock(), embedder=Dying.identity) as store:
        await store.reembed(Dying())

asyncio.run(main())
"""


class Counting:
    def __init__(self, identity: EmbedderIdentity) -> None:
        self.identity, self.texts = identity, 0

    async def embed(self, texts):
        self.texts += len(texts)
        return np.ones((len(texts), 2), dtype=np.float32)


async def killed_half_way(path: Path) -> None:
    async with SqliteStore(path, clock=ManualClock(), embedder=OLD) as store:
        for i in range(COUNT):
            document = Document(f"text {i}", np.array([1, 0], dtype=np.float32))
            await store.put("w", "n", f"k{i:03}", {}, document=document)
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9


async def test_searches_find_as_before_after_it_was_killed(tmp_path: Path):
    await killed_half_way(tmp_path / "s.db")
    async with SqliteStore(tmp_path / "s.db", clock=ManualClock(), embedder=OLD) as store:
        hits = await store.search("w", "", np.array([1, 0], dtype=np.float32), 5, Where(namespace="n"))
        assert [hit.similarity for hit in hits] == [1.0] * 5
        assert (await store.info())["embedder"]["name"] == "old"


async def test_the_next_run_embeds_only_what_is_lacking(tmp_path: Path):
    await killed_half_way(tmp_path / "s.db")
    counting = Counting(NEW)
    async with SqliteStore(tmp_path / "s.db", clock=ManualClock(), embedder=NEW) as store:
        await store.put("w", "n", "k000", {}, document=Document("changed meanwhile"))
        assert await store.reembed(counting) == COUNT
        assert counting.texts == COUNT - 512 + 1
        assert (await store.info())["embedder"]["name"] == "new"
        documents = await store.documents("w", "n", ["k000", "k599"])
    assert documents["k000"].text == "changed meanwhile"
    assert all(np.allclose(each.vector, [0.5**0.5] * 2) for each in documents.values())


async def test_vectors_of_a_third_embedder_are_never_taken_over(tmp_path: Path):
    await killed_half_way(tmp_path / "s.db")
    counting = Counting(OTHER)
    async with SqliteStore(tmp_path / "s.db", clock=ManualClock(), embedder=OTHER) as store:
        assert await store.reembed(counting) == counting.texts == COUNT
        assert (await store.info())["embedder"]["name"] == "other"
