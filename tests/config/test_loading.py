from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from omegaconf import OmegaConf

from toolmem.config import load
from toolmem.config.layers import Layer, merge
from toolmem.errors import ConfigError
from toolmem.operations.table import described_flows


@pytest.fixture
def written(tmp_path):
    def write(text, name="my.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def problems(files=(), overrides=(), env=None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(files, overrides, env=env or {}, dotenv=None)
    return caught.value.problems


def loaded(files=(), overrides=(), env=None):
    return load(files, overrides, env=env or {}, dotenv=None, described=described_flows())


def test_the_default_configuration_needs_no_key_and_no_network():
    settings = loaded().settings
    assert settings.llm["default"].backend == "offline"
    assert settings.embedding_model["default"].backend == "multilingual"
    assert settings.vector_store["default"].backend == "sqlite"
    assert settings.vector_store["default"].params.path == ".toolmem/memory.db"
    assert settings.http.host == "127.0.0.1"
    assert settings.rules.max_in_prompt == 30
    assert settings.rules.max_characters == 6000
    assert settings.auth.token_env == "TOOLMEM_TOKEN"
    assert list(settings.flow) == [
        "add_tool_call_result",
        "summary_tool_memory",
        "retrieve_tool_memory",
        "vector_store",
        "retry_evaluations",
        "rejudge",
        "capture_tool_rules",
        "tool_rules_for_prompt",
        "note_demand",
        "lift_demand",
        "check_tool_call",
        "advise_tool_call",
    ]


def test_files_go_over_the_default_in_order_and_overrides_over_files(written):
    first = written("http: {port: 1000}\nllm:\n  default: {model_name: a}\n", "first.yaml")
    second = written("http: {port: 2000}\n", "second.yaml")
    both = loaded([first, second], ["http.port=3000"])
    assert both.settings.http.port == 3000
    assert both.settings.llm["default"].model_name == "a"
    assert both.settings.llm["default"].backend == "offline"
    assert loaded([second, first]).settings.http.port == 1000


def test_each_value_has_an_origin(written):
    path = written("http:\n  port: 1000\nrules:\n  nouns:\n    mail: [letter]\n")
    origins = loaded([path], ["http.host=::1"]).origins
    assert origins.of(("http", "port")) == f"{path}:2"
    assert origins.of(("rules", "nouns", "mail")) == f"{path}:5"
    assert origins.of(("http", "host")) == "override"
    assert origins.of(("llm", "default", "backend")) == "default"
    assert origins.of(("mcp", "port")) == "class default"


def test_a_flow_of_a_file_is_added_and_one_of_a_known_name_keeps_what_the_file_does_not_say(written):
    path = written(
        "flow:\n  mine:\n    flow_content: a >> b\n  summary_tool_memory:\n    flow_content: c\n"
        "    input_schema:\n      tool_names: {description: names}\n"
    )
    flows = loaded([path]).settings.flow
    assert flows["mine"].flow_content == "a >> b"
    assert flows["summary_tool_memory"].flow_content == "c"
    assert flows["summary_tool_memory"].description
    assert flows["summary_tool_memory"].input_schema["tool_names"].description == "names"
    assert flows["summary_tool_memory"].input_schema["tool_names"].types == ("string", "array")
    assert not flows["summary_tool_memory"].input_schema["force"].required


def test_params_of_the_default_do_not_carry_over_to_another_backend(written):
    path = written("embedding_model:\n  default: {backend: dashscope, model_name: text-embedding-v4}\n")
    assert loaded([path]).settings.embedding_model["default"].params.dimensions is None
    changed = loaded(
        [], ["vector_store.default.backend=elasticsearch", "vector_store.default.params.hosts=http://es:9200"]
    )
    assert changed.settings.vector_store["default"].params.hosts == "http://es:9200"
    kept = loaded([], ["vector_store.default.params.synchronous=NORMAL"])
    assert kept.settings.vector_store["default"].params.path == ".toolmem/memory.db"


def test_lists_are_replaced(written):
    path = written("disabled_flows: [rejudge]\n")
    assert loaded([path], ['disabled_flows=["vector_store"]']).settings.disabled_flows == ["vector_store"]


def test_every_problem_is_told_at_once_with_its_line(written):
    path = written(
        "htp: {}\nhttp:\n  prt: 1\n  host: 5\nllm:\n  default: {backend: openai, params: {temperature: hot}}\n"
        "vector_store:\n  default: {backend: qdrant}\nflow:\n  x: {description: no content}\ntime_zone: Mars/Olympus\n"
    )
    found = problems([path], ["mcp.port=70000", "session.judging=later"])
    for expected in (
        f"htp: unknown (did you mean 'http'?) [{path}:1]",
        f"http.prt: unknown (did you mean 'port'?) [{path}:3]",
        f"http.host: expected text, got 5 (quote it to make it text) [{path}:4]",
        f"llm.default.params.temperature: expected a number, got 'hot' [{path}:6]",
        f"flow.x.flow_content: missing [{path}:10]",
        "mcp.port: expected at most 65535, got 70000",
        "session.judging: expected one of 'background' or 'deferred', got 'later'",
    ):
        assert expected in found
    assert any("no llm backend is called 'openai' (did you mean 'openai_compatible'?)" in line for line in found)
    assert any("'qdrant' is a vector_store backend that toolmem does not have; it has sqlite" in line for line in found)
    assert any("time_zone: 'Mars/Olympus' is no time zone" in line for line in found)
    assert len(found) == 10


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("llm=3", "override llm: expected a section"),
        ("llm.default=offline", "override llm.default: expected a section"),
        ("op.x.params=5", "override op.x.params: expected a section"),
        ("http=null", "override http: expected a section"),
        ("http.port", "expected name=value"),
        ("http.port=1e999", "not a finite number"),
        ("http.port=12:30", "http.port: expected a whole number, got '12:30'"),
        ("http.port='80'", "http.port: expected a whole number, got '80'"),
        ("budget.max_cost=-1", "budget.max_cost: expected at least 0, got -1"),
        ("rules.capture=no", "rules.capture: expected true or false or one of 'model', got 'no'"),
        ("nothing.at.all=1", "nothing: unknown"),
        ("vector_store.default.params.hosts=x", "the backend 'sqlite' does not have it"),
        (
            "vector_store.default.embedding_model=defalt",
            "no embedding_model is called 'defalt' (did you mean 'default'?)",
        ),
        ("flow.rejudge.input_schema.force.type=bol", "'bol' is no type"),
    ],
)
def test_a_wrong_override_is_refused(override, said):
    assert any(said in problem for problem in problems([], [override]))


def test_a_scalar_in_place_of_a_section_of_a_file(written):
    assert problems([written("llm: offline\n")]) == [
        f"llm: expected a section (key: value), got 'offline' [{written('llm: offline' + chr(10))}:1]"
    ]


def test_a_list_in_place_of_a_section_of_a_file(written):
    path = written("llm: [1]\n")
    assert problems([path]) == [f"llm: expected a section (key: value), got [1] [{path}:1]"]


def test_an_empty_section_says_nothing(written):
    path = written("llm:\nmcp:\nop:\nllm_extra:\n".replace("llm_extra:\n", "") + "vector_store:\n  default:\n")
    assert loaded([path]).settings.vector_store["default"].params.path == ".toolmem/memory.db"


def test_an_override_that_cannot_be_read_hides_no_other_problem(written):
    found = problems([written("httpp: {}\n")], overrides=["nothing", "http.port=many", "a..b=1"])
    assert [problem.partition(":")[0] for problem in found] == [
        *("override 'nothing'", "override 'a..b=1'"),
        *("http.port", "httpp"),
    ]
    broken = problems([written("x: [\n")], overrides=["nothing"])
    assert len(broken) == 2


def test_a_wrong_secret_is_not_repeated_in_the_error():
    (problem,) = problems([], ["llm.default.params.api_key=12345678"])
    assert "12345678" not in problem
    assert problem.startswith("llm.default.params.api_key: expected text")


def test_secrets_do_not_show_in_the_settings():
    settings = loaded([], ["llm.default.params.api_key=sk-hidden"]).settings
    assert "sk-hidden" not in repr(settings)
    assert settings.llm["default"].params.api_key.get_secret_value() == "sk-hidden"


def test_one_value_may_refer_to_another(written):
    path = written("llm:\n  fast: {backend: dry_run, model_name: '${llm.default.model_name}'}\n")
    settings = loaded([path], ["llm.default.model_name=qwen-plus"]).settings
    assert settings.llm["fast"].model_name == "qwen-plus"
    with pytest.raises(ConfigError, match=r"model_name"):
        loaded([written("llm:\n  fast: {model_name: '${llm.nobody.model_name}'}\n")])


def test_a_section_may_refer_to_another_and_differ_from_it_in_part(written):
    path = written("llm:\n  base: {backend: dry_run, model_name: qwen-plus}\n  fast: ${llm.base}\n")
    fast = loaded([path], ["llm.fast.model_name=qwen-turbo"]).settings.llm["fast"]
    assert (fast.backend, fast.model_name) == ("dry_run", "qwen-turbo")


def test_an_unreadable_file_and_a_bad_override_are_told_together(tmp_path):
    found = problems([tmp_path / "a.yaml", tmp_path / "b.yaml"], ["x"])
    assert len(found) == 3


def test_a_file_may_be_named_without_its_ending_and_default_is_the_packaged_one(written, tmp_path, monkeypatch):
    written("http: {port: 1000}\n", "reme.yaml")
    monkeypatch.chdir(tmp_path)
    assert loaded(["reme"]).settings.http.port == 1000
    ours = loaded(["default"])
    assert ours.settings == loaded().settings
    assert ours.origins.of(("http", "port")) == loaded().origins.of(("http", "port"))
    assert problems(["rme"]) == ["rme: no such file, nor rme.yaml or rme.yml; config=default is toolmem's own"]
    assert problems(["rme.yaml"]) == ["rme.yaml: no such file"]
    written("http: {port: 2000}\n", "default")
    assert loaded(["default"]).settings == loaded().settings, "what lies here under this name is not meant"
    assert loaded(["./default"]).settings.http.port == 2000


def _trees() -> st.SearchStrategy:
    names = st.sampled_from("abcd")
    leaves = st.none() | st.booleans() | st.integers() | st.text("xyz", max_size=2)
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3))
    return st.dictionaries(names, values, max_size=4)


@given(st.lists(_trees(), min_size=1, max_size=4))
def test_layers_are_merged_as_omegaconf_merges_them(trees):
    try:
        theirs = OmegaConf.to_container(OmegaConf.unsafe_merge(*map(OmegaConf.create, trees)))
    except TypeError:
        reject()  # OmegaConf places no list over a section; here it is placed, and then refused with a reason
    assert merge([Layer(tree, str) for tree in trees])[0] == theirs


def test_a_memory_is_ready_without_what_only_some_configurations_need(tmp_path):
    code = (
        "import sys, toolmem\n"
        f"toolmem.ToolMem({str(tmp_path / 'memory.db')!r})\n"
        "print({'omegaconf', 'tenacity', 'numpy', 'apsw', 'jinja2', 'aiohttp', 'httpx'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "set()\n"


def test_importing_reads_no_environment():
    code = (
        "import os, sys\n"
        "class Watched(dict):\n"
        "    def get(self, key, default=None):\n"
        "        assert not key.startswith(('DASHSCOPE', 'FLOW_', 'TOOLMEM')), key\n"
        "        return super().get(key, default)\n"
        "os.environ = Watched(os.environ)\n"
        "import toolmem.config, toolmem.flow.configure\n"
        "assert 'omegaconf' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
