"""Settings from files, overrides and the environment."""

from pathlib import Path

import pytest

from toolmem import ToolMem
from toolmem.config.environment import Environment, read_dotenv
from toolmem.config.load import load
from toolmem.config.show import shown_settings
from toolmem.errors import ConfigError, RequestError
from toolmem.flow.op import Op, register

HERE = Path(__file__).parent
REMOTE = "llm: {default: {backend: openai_compatible, model_name: m}}\n"


def settings(tmp_path, text="", *overrides, real=None, dotenv=None):
    (tmp_path / "my.yaml").write_text(text)
    environment = Environment(real or {}, dotenv or {})
    return load([tmp_path / "my.yaml"], overrides, environment=environment)


@pytest.mark.parametrize(
    ("written", "read"),
    [(each, each) for each in ("no", "12:30", "007", "1_000", "2026-01-31")]
    + [("'4'", "4"), ("null", None), ("true", True), ("1.5", 1.5)],
)
def test_a_scalar_is_what_it_looks_like_in_files_overrides_and_the_environment(
    tmp_path, written, read
):
    path = ("cmd", "params", "x")
    assert settings(tmp_path, f"cmd: {{params: {{x: {written}}}}}").layer[path].value == read
    assert settings(tmp_path, "", f"cmd.params.x={written}").layer[path].value == read
    text = "cmd: {params: {x: '${oc.env:X}'}}"
    assert settings(tmp_path, text, real={"X": written}).layer[path].value == read


@pytest.mark.parametrize(
    "text",
    ["llm: hello", "op: [1]", "vector_store: 3", "flow: []", "op: {x: null}", "guard: [1]"]
    + ["- a", "{", "x: &a [*a]", "a: " + "[" * 5000],
)
def test_a_file_of_another_shape_is_a_problem_and_no_crash(tmp_path, text):
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"expected|not YAML|unknown"):
        ToolMem(tmp_path / "my.yaml")


def test_an_infinite_number_and_a_value_in_place_of_a_section_are_refused(tmp_path):
    found = settings(tmp_path, "budget: {max_cost: 1e999}\nhttp: here\n").problems
    assert "budget.max_cost: expected a finite number" in found[0]
    assert "http: expected a section, got 'here'" in found[1]
    (twice,) = settings(tmp_path, "language: zh\nlanguage: zh\n").problems
    assert "the key 'language' stands twice" in twice
    with pytest.raises(ConfigError, match="expected name=value"):
        ToolMem(overrides=["language"])


def test_every_problem_is_told_at_once_with_the_place_and_the_nearest_name(tmp_path):
    (tmp_path / "my.yaml").write_text(
        "op:\n  summary_tool_memory_op:\n    params: {recent_cal_count: 3,"
        " summary_sleep_interval: -1}\n"
        "llm: {default: {backend: opena}}\n"
        "flow: {quick: {flow_content: parse_tool_cal_result_op}}\n"
        "budgett: {max_tokens: 1}\n"
    )
    with pytest.raises(ConfigError) as raised:
        ToolMem(tmp_path / "my.yaml", overrides=["llm.defalt.model_name=x", "language=de"])
    told = "\n".join(raised.value.problems)
    for part in (
        "op.summary_tool_memory_op.params.recent_cal_count: unknown "
        "(did you mean 'op.summary_tool_memory_op.params.recent_call_count'?)",
        "summary_sleep_interval: expected `float` >= 0",
        "llm.default.backend: expected one of 'offline', 'dry_run', 'dashscope', ",
        "did you mean 'parse_tool_call_result_op'",
        "budgett: unknown (did you mean 'budget'?)",
        "llm.defalt.model_name: there is no llm.defalt (did you mean 'default'?) ",
        "language: expected one of '', 'zh', got 'de' [override]",
    ):
        assert part.strip() in told
    assert "my.yaml:3]" in told
    assert len(raised.value.problems) == 7


def test_a_file_that_changes_the_backend_begins_without_the_defaults_params(tmp_path):
    found = settings(
        tmp_path,
        "vector_store: {default: {backend: local, params: {store_dir: here}}}\n"
        "embedding_model: {default: {backend: hashing}}\n",
    )
    assert ("vector_store", "default", "params", "path") not in found.layer
    assert found.settings.vector_store["default"].params.store_dir == "here"


def test_names_of_models_and_stores_that_nothing_configures_are_refused(tmp_path):
    text = "op: {rejudge_op: {llm: larg}}\nllm: {large: {backend: offline}}\n"
    (told,) = settings(tmp_path, text).problems
    assert told == "op.rejudge_op.llm: 'larg' is not configured (did you mean 'large'?)"


def test_an_override_of_an_op_that_no_flow_uses_is_refused(tmp_path):
    (tmp_path / "my.yaml").write_text("disabled_flows: [rejudge]\n")
    with pytest.raises(ConfigError, match="no flow uses 'rejudge_op'"):
        ToolMem(tmp_path / "my.yaml", overrides=["op.rejudge_op.params.force=true"])


def test_the_guard_is_switched_off_as_a_whole_and_the_real_environment_goes_before_all(tmp_path):
    def modes(text="", *overrides, **environment):
        found = settings(tmp_path, text, *overrides, **environment)
        assert found.problems == []
        guard = found.settings.guard
        return {guard.rules, guard.repeats, guard.names, guard.schema}, found.warnings

    assert modes("guard: off")[0] == modes("guard: false")[0] == {"off"}
    assert modes("", "guard=off")[0] == {"off"}
    assert modes()[0] == {"enforce", "advise"}
    on = "guard.rules=enforce"
    assert modes("guard: off", on)[0] == {"enforce", "advise"}
    assert modes("", on, real={"TOOLMEM_GUARD": "off"})[0] == {"off"}
    assert modes("", on, dotenv={"TOOLMEM_GUARD": "off"})[0] == {"enforce", "advise"}
    told = modes("", real={"TOOLMEM_GUARD": "maybe"})
    assert (told[0], "it is ignored" in told[1][0]) == ({"enforce", "advise"}, True)


# ---------------------------------------------------------------- the environment


def of_model(found):
    params = found.settings.llm["default"].params
    return params.base_url, params.api_key


def test_an_address_of_dotenv_demands_a_key_of_dotenv(tmp_path):
    both = {"FLOW_LLM_BASE_URL": "https://a.example/v1", "FLOW_LLM_API_KEY": "k1"}
    found = settings(tmp_path, REMOTE, dotenv=both)
    assert of_model(found) == ("https://a.example/v1", "k1")
    address = {"FLOW_LLM_BASE_URL": "https://a.example/v1"}
    refused = settings(tmp_path, REMOTE, dotenv=address, real={"FLOW_LLM_API_KEY": "k2"})
    assert "the key from elsewhere is not sent there" in refused.problems[0]
    assert of_model(refused) == ("", "")
    refused = settings(tmp_path, REMOTE, "llm.default.params.api_key=k3", dotenv=address)
    assert "the key from elsewhere is not sent there" in refused.problems[0]


def test_the_real_environment_goes_before_dotenv(tmp_path):
    real = {"FLOW_LLM_BASE_URL": "https://b.example/v1", "FLOW_LLM_API_KEY": "k2"}
    dotenv = {"FLOW_LLM_BASE_URL": "https://a.example/v1", "FLOW_LLM_API_KEY": "k1"}
    found = settings(tmp_path, REMOTE, real=real, dotenv=dotenv)
    assert of_model(found) == ("https://b.example/v1", "k2")


def test_hosts_of_elasticsearch_come_from_the_environment_where_no_file_says_them(tmp_path):
    given = "vector_store: {default: {backend: elasticsearch, params: {index_prefix: p}}}"
    real = {"FLOW_ES_HOSTS": "http://a:9200,http://b:9200"}
    found = settings(tmp_path, given, real=real).settings.vector_store["default"].params
    assert (found.hosts, found.index_prefix) == (["http://a:9200", "http://b:9200"], "p")
    (tmp_path / "es.yaml").write_text(given)
    with ToolMem(tmp_path / "es.yaml") as memory:
        assert "vector_store.default.params.hosts: needed" in memory.services.problems()[0]


def test_openais_address_never_gets_dashscopes_key(tmp_path):
    real = {"OPENAI_BASE_URL": "https://o.example/v1", "DASHSCOPE_API_KEY": "d"}
    assert of_model(settings(tmp_path, REMOTE, real=real))[1] == ""
    own = {"OPENAI_API_KEY": "o"}
    assert of_model(settings(tmp_path, REMOTE, real={**real, **own}))[1] == "o"
    assert of_model(settings(tmp_path, REMOTE, real=own)) == ("https://api.openai.com/v1", "o")
    foreign = "llm.default.params.base_url=https://elsewhere.example/v1"
    assert of_model(settings(tmp_path, REMOTE, foreign, real=real))[1] == ""
    theirs = "llm.default.params.base_url=https://eu.aliyuncs.com/compatible-mode/v1"
    assert of_model(settings(tmp_path, REMOTE, theirs, real={**real, **own}))[1] == "d"
    assert of_model(settings(tmp_path, REMOTE, theirs, real=own))[1] == ""


def test_dotenv_fills_keys_and_addresses_alone(tmp_path):
    (tmp_path / ".env").write_text(
        "export FLOW_LLM_API_KEY='a b'  # quoted\nTOOLMEM_OP_MODULES=evil\nnonsense\nX=\"q\"\n"
    )
    dotenv = read_dotenv(tmp_path / ".env")
    assert (dotenv["FLOW_LLM_API_KEY"], dotenv["X"]) == ("a b", "q")
    text = REMOTE + "op_modules: ['${oc.env:X,json}']\n"
    found = settings(tmp_path, text, dotenv=dotenv)
    assert found.settings.op_modules == ["json"]  # ${oc.env:} reads the real environment


def test_a_variable_that_is_not_set_needs_a_default_and_other_references_are_refused(tmp_path):
    first, second = settings(
        tmp_path, "dump_dir: '${oc.env:NOWHERE}'\ncmd: {flow: '${llm.default}'}\n"
    ).problems
    assert "dump_dir: NOWHERE is not set" in first
    assert "only ${oc.env:NAME,default} is provided" in second


# ---------------------------------------------------------------- what is shown


def test_each_value_is_shown_with_its_origin_and_no_secret(tmp_path):
    (tmp_path / "my.yaml").write_text(
        "flow: {add_tool_call_result: {flow_content: "
        "'ParseToolCallResultOp(evaluation_sleep_interval=2.0) >> update_vector_store_op'}}\n"
        "llm: {default: {backend: dashscope, params: "
        "{api_key: sk-abc, base_url: 'https://me:pw@host/v1?key=k'}}}\n"
    )
    keep = "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=7"
    engine = ToolMem(tmp_path / "my.yaml", overrides=[keep]).engine
    rows = {row.name: row for row in shown_settings(engine.configuration, engine.params())}
    prefix = "op.parse_tool_call_result_op.params."
    assert rows[prefix + "max_history_tool_call_cnt"][1:] == (7, "override")
    assert rows[prefix + "evaluation_sleep_interval"][1:] == (2.0, "flow_content")
    assert rows[prefix + "force"][1:] == (False, "class default")
    assert rows["llm.default.params.api_key"].value == "***"
    assert rows["llm.default.params.base_url"].value == "https://***@host/v1?key=***"
    assert rows["llm.default.backend"].origin.endswith("my.yaml:2")
    assert rows["language"].origin == "class default"
    assert "sk-abc" not in str(rows)


# ---------------------------------------------------------------- files of ReMe, and own ops


@pytest.mark.parametrize("name", ["theirs_a.yaml", "theirs_b.yaml"])
def test_a_whole_file_of_reme_loads_and_says_once_what_is_left_out(name, caplog, monkeypatch):
    monkeypatch.setenv("FLOW_LLM_API_KEY", "k")
    memory = ToolMem(HERE / name)
    told = [record.getMessage() for record in caplog.records]
    assert sum("ignored, they mean nothing here" in each for each in told) == 1
    assert sum("not provided by toolmem and left out: flows" in each for each in told) == 1
    with pytest.raises(RequestError, match="not provided by toolmem: (build_query|trajectory_pre)"):
        memory.run("retrieve_task_memory" if "_a" in name else "summary_task_memory")
    assert memory.services.problems() == []


def test_both_dialects_bind_the_params_of_the_mission():
    first = ToolMem(HERE / "theirs_a.yaml").engine.params()
    assert first["parse_tool_call_result_op"][0].max_history_tool_call_cnt == 60
    assert first["parse_tool_call_result_op"][0].evaluation_sleep_interval == 0.5
    second = ToolMem(HERE / "theirs_b.yaml").engine.params()
    assert second["summary_tool_memory_op"][0].recent_call_count == 20
    assert second["parse_tool_call_result_op"][0].max_history_tool_call_cnt == 100


def test_names_declared_as_a_string_may_be_a_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = ToolMem(HERE / "theirs_b.yaml", overrides=["llm.default.backend=offline"])
    for given in (["a,b"], "a"):
        answered = memory.run("retrieve_tool_memory", tool_names=given)
        assert answered.metadata["not_found"] == (given if isinstance(given, list) else [given])


def test_the_defaults_of_the_mission():
    params = ToolMem().engine.params()
    parse, summary = params["parse_tool_call_result_op"][0], params["summary_tool_memory_op"][0]
    assert (parse.max_history_tool_call_cnt, parse.evaluation_sleep_interval) == (100, 1.0)
    assert (summary.recent_call_count, summary.summary_sleep_interval) == (30, 1.0)


def test_an_op_of_ones_own_is_registered_by_a_module_that_the_file_names(tmp_path, monkeypatch):
    (tmp_path / "hello_ops.py").write_text(
        "from toolmem.flow.op import Op\nfrom toolmem.flow.op import register\n"
        "@register\nclass HelloOp(Op):\n    reads = ('workspace_id',)\n"
        "    async def run(self, context):\n        context.response.answer = 'hello'\n"
    )
    text = "op_modules: [hello_ops]\nflow: {hi: {flow_content: HelloOp()}}\n"
    (tmp_path / "my.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert ToolMem("my.yaml").run("hi").answer == "hello"
    with pytest.raises(ConfigError, match="op_modules: nowhere_ops: ModuleNotFoundError"):
        ToolMem("my.yaml", overrides=["op_modules=[nowhere_ops]"])


def test_an_op_of_ones_own_takes_overrides_also_where_no_flow_uses_it():
    with pytest.raises(TypeError, match="needs a method `run"):

        @register
        class NothingOp(Op):
            pass

    @register
    class TwiceOp(Op):
        def run(self, context):
            pass

    with pytest.raises(ConfigError, match=r"op.twice_op.params.x: unknown"):
        ToolMem(overrides=["op.twice_op.params.x=1"])


def test_a_module_of_op_modules_holds_judges_and_other_things_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "my_judges.py").write_text(
        "from toolmem.testing.scripted import ScriptedJudge\njudges = {'strict': ScriptedJudge()}\n"
    )
    (tmp_path / "my.yaml").write_text(
        "op_modules: [my_judges]\nllm: {strict: {backend: offline}}\n"
        "op: {parse_tool_call_result_op: {llm: strict}}\n"
        "vector_store: {default: {backend: memory}}\n"
    )
    monkeypatch.chdir(tmp_path)
    with ToolMem("my.yaml") as memory:
        assert memory.services.problems() == []
        memory.add([{"tool_name": "search", "input": {"q": "rain"}, "output": "3 hits"}])
        assert memory.calls()[0].judge.backend == "scripted"


def test_an_address_of_dotenv_gets_no_password_from_elsewhere(tmp_path):
    text = "vector_store: {default: {backend: elasticsearch, params: {basic_auth: [me, x]}}}"
    address = {"FLOW_ES_HOSTS": "http://evil.example:9200"}
    refused = settings(tmp_path, text, dotenv=address)
    assert "the password from elsewhere is not sent there" in refused.problems[0]
    for known in ({"real": address}, {"real": address, "dotenv": address}):
        found = settings(tmp_path, text, **known)
        assert not found.problems


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &a x\nb: [" + "*a," * 1001 + "]", "big.yaml:2: not YAML: over 1,000 aliases"),
        ("# " + "x" * 1_100_000, "big.yaml:1: not YAML: over 1,000,000 bytes"),
        (LAUGHS, "its aliases stand for over 100,000 values"),
        ("a: &a [*a]", "its aliases stand for over 100,000 values"),
        *((each * 100_000, "over 50 levels") for each in ("[", "{", "- ", "? ")),
    ],
)
def test_yaml_that_would_fill_the_memory_is_refused_by_name(tmp_path, text, told):
    file = tmp_path / "big.yaml"
    file.write_text(text)
    assert told in " ".join(load([file]).problems)


def test_a_few_aliases_are_read(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("llm:\n  default: &d\n    backend: offline\n  other: *d\n")
    assert load([file]).problems == []
