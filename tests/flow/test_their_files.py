"""Whole configurations as people have them for ReMe and FlowLLM, in both dialects."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import toolmem.ops  # noqa: F401  (registers the ops that these files name)
from toolmem.config.reme_compat import absent_ops
from toolmem.errors import ConfigError
from toolmem.flow.configure import configure
from toolmem.flow.op import Op
from toolmem.flow.registry import known_ops
from toolmem.operations.table import described_flows

FILES = Path(__file__).parents[1] / "config"


def configured(name, overrides=(), ops=None, env=None):
    return configure([FILES / name], overrides, ops, env=env or {}, dotenv=None, described=described_flows())


def test_a_file_of_snake_case_names_works(caplog):
    done = configured("theirs_a.yaml", env={"FLOW_LLM_API_KEY": "k", "FLOW_LLM_BASE_URL": "http://llm"})
    assert str(done.flows["add_tool_call_result"]).startswith("ParseToolCallResultOp(")
    parse = next(done.flows["add_tool_call_result"].ops())
    assert (parse.params.max_history_tool_call_cnt, parse.params.evaluation_sleep_interval) == (60, 0.5)
    assert [op.key for op in done.flows["summary_tool_memory"].ops()] == [
        "summary_tool_memory_op",
        "update_vector_store_op",
    ]
    assert done.settings.llm["default"].params.base_url == "http://llm"
    assert done.settings.embedding_model["default"].params.dimensions == 1024
    assert done.settings.vector_store["default"].params.hosts == "http://localhost:9200"
    assert done.left_out == {
        "retrieve_task_memory": "not provided by toolmem: build_query_op, recall_vector_store_op, rerank_memory_op",
        "summary_personal_memory": "not provided by toolmem: info_filter_op, get_observation_op, load_today_memory_op",
    }


def test_a_file_of_classes_with_literals_works():
    done = configured("theirs_b.yaml")
    summary = next(done.flows["summary_tool_memory"].ops())
    assert summary.params.recent_call_count == 20
    assert set(done.left_out) == {"summary_task_memory", "react"}
    assert set(done.flows) >= {"add_tool_call_result", "retrieve_tool_memory", "vector_store", "rejudge"}
    overridden = configured("theirs_b.yaml", ["op.summary_tool_memory_op.params.recent_call_count=5"])
    assert next(overridden.flows["summary_tool_memory"].ops()).params.recent_call_count == 5


def test_what_is_left_out_or_ignored_is_told_once_each(caplog):
    with caplog.at_level(logging.WARNING, logger="toolmem"):
        configured("theirs_b.yaml")
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 3
    assert texts[0].startswith("ignored, they mean nothing here: enable_logo, init_logger, thread_pool_max_workers")
    assert "external_mcp" in texts[0]
    assert "llm.qwen3_max_instruct.token_count" in texts[0]
    assert "http.host" in texts[1]
    assert "127.0.0.1" in texts[1]
    assert texts[2].startswith("left out: flows summary_task_memory, react")


def test_names_may_be_a_list_though_the_file_says_string():
    done = configured("theirs_a.yaml")
    assert done.input_schema("summary_tool_memory")["tool_names"].types == ("string", "array")
    assert done.input_schema("add_tool_call_result")["tool_call_results"].types == ("array",)


def test_an_address_that_is_open_to_all_stays_local_without_a_token():
    closed = configured("theirs_a.yaml")
    assert closed.settings.http.host == closed.settings.mcp.host == "127.0.0.1"
    assert closed.loaded.origins.of(("http", "host")).endswith("theirs_a.yaml:13 (no token: kept local)")
    opened = configured("theirs_a.yaml", env={"TOOLMEM_TOKEN": "secret"})
    assert opened.settings.http.host == "0.0.0.0"
    renamed = configured("theirs_a.yaml", ["auth.token_env=MINE"], env={"MINE": "secret"})
    assert renamed.settings.http.host == "0.0.0.0"


def test_their_stores_in_memory_and_in_a_folder_are_the_embedded_one():
    memory = configured("theirs_b.yaml").settings.vector_store["default"]
    assert (memory.backend, memory.params.path) == ("sqlite", ":memory:")
    overrides = ["vector_store.default.backend=local", "vector_store.default.params.store_dir=some/folder"]
    done = configured("theirs_b.yaml", overrides)
    store = done.settings.vector_store["default"]
    assert (store.backend, Path(store.params.path)) == ("sqlite", Path("some/folder/memory.db"))
    assert done.loaded.origins.of(("vector_store", "default", "backend")) == "override (local)"


@pytest.mark.parametrize("backend", ["chroma", "qdrant", "pgvector"])
def test_a_store_that_toolmem_does_not_have_is_refused_with_ours(backend):
    with pytest.raises(ConfigError, match=rf"'{backend}' is a vector_store backend .* it has sqlite, elasticsearch"):
        configured("theirs_b.yaml", [f"vector_store.default.backend={backend}"])


def test_an_override_of_an_op_that_was_left_out_says_so():
    with pytest.raises(ConfigError, match="not provided by toolmem: rerank_memory_op"):
        configured("theirs_a.yaml", ["op.rerank_memory_op.params.top_k=3"])


def test_a_mistyped_op_is_still_an_error_in_such_a_file(tmp_path):
    path = tmp_path / "mistyped.yaml"
    path.write_text((FILES / "theirs_a.yaml").read_text().replace("build_query_op >>", "build_qery_op >>"))
    done = configure(
        [path], env={}, dotenv=None, described=described_flows()
    )  # its flow uses other ops that toolmem does not have
    assert "retrieve_task_memory" in done.left_out
    path.write_text(path.read_text().replace("summary_tool_memory_op >>", "sumary_tool_memory_op >>"))
    with pytest.raises(ConfigError, match="did you mean 'summary_tool_memory_op'"):
        configure([path], env={}, dotenv=None, described=described_flows())


def test_an_op_of_ones_own_under_one_of_their_names_is_used():
    class SimpleReactOp(Op):
        async def execute(self, context):
            raise AssertionError

    done = configured("theirs_b.yaml", ["disabled_flows=[]"], {**known_ops(), "simple_react_op": SimpleReactOp})
    assert type(next(done.flows["react"].ops())) is SimpleReactOp


def test_their_list_of_ops_holds_none_of_ours():
    ours = {op_class.name for op_class in known_ops().values() if op_class.__module__.startswith("toolmem.ops")}
    assert len(ours) >= 7
    assert not ours & set(absent_ops())
    assert absent_ops()["build_query_op"] == "reme-ai 0.1.4"
    assert absent_ops()["agentic_retrieve_op"] == "reme-ai 0.2.0.2"
    assert len(absent_ops()) > 80
