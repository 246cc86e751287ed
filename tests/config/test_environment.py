from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolmem.config import load
from toolmem.config.environment import fill_in, read_dotenv
from toolmem.config.layers import Layer, merge
from toolmem.errors import ConfigError


def test_a_variable_is_read_as_a_scalar_of_the_usual_rules():
    env = {"PORT": "8080", "TIME": "12:30", "NO": "no", "QUOTED": "'4'", "EMPTY": ""}
    assert fill_in("${oc.env:PORT}", env) == 8080
    assert fill_in("${oc.env:TIME}", env) == "12:30"
    assert fill_in("${oc.env:NO}", env) == "no"
    assert fill_in("${oc.env:QUOTED}", env) == "4"
    assert fill_in("${oc.env:EMPTY,x}", env) == ""
    assert fill_in("http://localhost:${oc.env:PORT}/v${oc.env:V,1}", env) == "http://localhost:8080/v1"


def test_defaults_may_be_nested_and_null():
    assert fill_in("${oc.env:A,${oc.env:B,3}}", {}) == 3
    assert fill_in("${oc.env:A,${oc.env:B,3}}", {"B": "b"}) == "b"
    assert fill_in("${oc.env:A,null}", {}) is None
    assert fill_in("${oc.env:A,}", {}) == ""


@pytest.mark.parametrize(("text", "said"), [("${oc.env:A}", "'A' is not set"), ("x ${oc.env:A,b", "no closing brace")])
def test_what_cannot_be_filled_in_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        fill_in(text, {})


@given(value=st.text(st.characters(exclude_categories=["Cs"])))
@example(value="${llm.default.model_name}")
@example(value="\\${x}")
@example(value="\\\\${")
def test_what_comes_from_the_environment_is_never_interpolated_again(value):
    filled = fill_in("a${oc.env:V}", {"V": value})
    tree, _ = merge([Layer({"key": filled}, lambda path: "")])
    assert tree["key"] == "a" + value


def test_a_missing_variable_is_told_with_the_line(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("llm:\n  default:\n    model_name: ${oc.env:MY_MODEL}\n")
    with pytest.raises(ConfigError) as caught:
        load([path], env={}, dotenv=None)
    assert caught.value.problems == [f"{path}:3: the environment variable 'MY_MODEL' is not set and has no default"]
    assert load([path], env={"MY_MODEL": "qwen-max"}, dotenv=None).settings.llm["default"].model_name == "qwen-max"


def key_of(section, backend, env, **params):
    overrides = [f"{section}.default.backend={backend}"]
    overrides += [f"{section}.default.params.{name}={value}" for name, value in params.items()]
    loaded = load([], overrides, env=env, dotenv=None)
    params = getattr(loaded.settings, section)["default"].params
    return (params.api_key.get_secret_value() if params.api_key else None), loaded.origins


def test_keys_come_from_the_environment_where_no_file_gives_one():
    env = {"DASHSCOPE_API_KEY": "main", "FLOW_LLM_API_KEY": "theirs"}
    key, origins = key_of("llm", "dashscope", env)
    assert key == "main"
    assert origins.of(("llm", "default", "params", "api_key")) == "environment DASHSCOPE_API_KEY"
    assert key_of("llm", "dashscope", {"FLOW_DASHSCOPE_API_KEY": "x"})[0] == "x"
    assert key_of("llm", "dashscope", {"FLOW_LLM_API_KEY": "y"})[0] == "y"
    assert key_of("llm", "openai_compatible", env)[0] == "theirs"
    assert key_of("llm", "openai_compatible", {"DASHSCOPE_API_KEY": "main"})[0] == "main"
    assert key_of("embedding_model", "openai_compatible", {"FLOW_EMBEDDING_API_KEY": "e"})[0] == "e"
    assert key_of("llm", "dashscope", env, api_key="given")[0] == "given"
    assert key_of("llm", "dashscope", {})[0] is None
    assert key_of("llm", "offline", env)[0] is None


def test_addresses_come_from_the_environment_too():
    env = {"FLOW_LLM_BASE_URL": "http://llm/v1", "FLOW_ES_HOSTS": "http://a:9200,http://b:9200"}
    overrides = ["llm.default.backend=openai_compatible", "vector_store.default.backend=elasticsearch"]
    settings = load([], overrides, env=env, dotenv=None).settings
    assert settings.llm["default"].params.base_url == "http://llm/v1"
    assert settings.vector_store["default"].params.hosts == "http://a:9200,http://b:9200"


OPENAI = {"OPENAI_BASE_URL": "http://gateway/v1", "OPENAI_API_KEY": "sk-openai"}
MODELS = pytest.mark.parametrize("section", ["llm", "embedding_model"])


def model_of(section, env, *, backend="openai_compatible", **params):
    overrides = [f"{section}.default.backend={backend}"]
    overrides += [f"{section}.default.params.{name}={value}" for name, value in params.items()]
    loaded = load([], overrides, env=env, dotenv=None)
    params = getattr(loaded.settings, section)["default"].params
    return params.base_url, params.api_key and params.api_key.get_secret_value(), loaded.origins


@MODELS
def test_the_names_of_openai_are_read_as_everybody_expects(section):
    url, key, origins = model_of(section, OPENAI)
    assert (url, key) == ("http://gateway/v1", "sk-openai")
    assert origins.of((section, "default", "params", "base_url")) == "environment OPENAI_BASE_URL"
    assert origins.of((section, "default", "params", "api_key")) == "environment OPENAI_API_KEY"
    assert model_of(section, {"OPENAI_API_KEY": "sk-openai"})[:2] == ("https://api.openai.com/v1", "sk-openai")
    assert model_of(section, OPENAI, base_url="http://mine/v1", api_key="given")[:2] == ("http://mine/v1", "given")
    assert model_of(section, OPENAI, base_url="http://mine/v1")[:2] == ("http://mine/v1", "sk-openai")
    assert model_of(section, OPENAI, backend="dashscope")[:2] == (None, None)


@MODELS
def test_the_names_of_openai_stand_behind_those_that_toolmem_read_before(section):
    theirs = {"FLOW_LLM_BASE_URL": "http://flow/v1", "FLOW_LLM_API_KEY": "flow"}
    assert model_of(section, {**OPENAI, **theirs})[:2] == ("http://flow/v1", "flow")
    without_address = {"OPENAI_API_KEY": "sk-openai", "DASHSCOPE_API_KEY": "dash"}
    assert model_of(section, without_address)[:2] == (None, "dash")
    assert model_of(section, without_address, base_url="http://mine/v1")[:2] == ("http://mine/v1", "dash")


@MODELS
@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://API.openai.com:443/v1"])
def test_a_key_of_another_service_is_not_sent_to_openai(section, url):
    both = {"OPENAI_API_KEY": "sk-openai", "DASHSCOPE_API_KEY": "dash", "FLOW_DASHSCOPE_API_KEY": "dash"}
    assert model_of(section, both, base_url=url)[1] == "sk-openai"
    assert model_of(section, {"DASHSCOPE_API_KEY": "dash"}, base_url=url)[1] is None
    assert model_of(section, {**both, "OPENAI_BASE_URL": "http://gateway/v1"})[1] == "sk-openai"
    assert model_of(section, {"DASHSCOPE_API_KEY": "dash", "OPENAI_BASE_URL": "http://gateway/v1"})[1] is None


def test_dotenv_never_overrides_the_real_environment(tmp_path):
    dotenv = tmp_path / ".env"
    dotenv.write_text(
        "# keys\nexport DASHSCOPE_API_KEY='from file'\nFLOW_ES_HOSTS = http://file:9200 # local\nbroken line\n"
    )
    overrides = ["llm.default.backend=dashscope", "vector_store.default.backend=elasticsearch"]
    settings = load([], overrides, env={"FLOW_ES_HOSTS": "http://real:9200"}, dotenv=dotenv).settings
    assert settings.llm["default"].params.api_key.get_secret_value() == "from file"
    assert settings.vector_store["default"].params.hosts == "http://real:9200"


def test_rule_capture_has_a_switch_in_the_environment(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("rules: {capture: true}\n")
    off = {"TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED": "Off"}
    assert load([], env={}, dotenv=None).settings.rules.capture
    assert not load([path], env=off, dotenv=None).settings.rules.capture
    assert load([path], ["rules.capture=true"], env=off, dotenv=None).settings.rules.capture
    on = {"TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED": "on"}
    path.write_text("rules: {capture: model}\n")
    assert load([path], env=on, dotenv=None).settings.rules.capture == "model"
    assert load([path], env=off, dotenv=None).settings.rules.capture is False
    theirs = load([], env={"OPENHUMAN_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED": "0"}, dotenv=None)
    assert theirs.origins.of(("rules", "capture")) == "environment OPENHUMAN_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED"
    with pytest.raises(ConfigError, match="expected one of 1, true, yes, on, 0, false, no, off; got 'maybe'"):
        load([], env={"TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED": "maybe"}, dotenv=None)


def test_dotenv_lines(tmp_path):
    dotenv = tmp_path / ".env"
    dotenv.write_text('A=1\nB="two words" # more\nC=\nD=a#b\n# E=5\n  F = x  \n')
    assert read_dotenv(dotenv) == {"A": "1", "B": "two words", "C": "", "D": "a#b", "F": "x"}
    assert read_dotenv(tmp_path / "absent") == {}


@pytest.mark.parametrize(
    "text", ["${oc.env:" * 2000, "${oc.env:A," * 2000 + "}" * 2000, "x ${oc.env:" * 2000 + "}" * 2000]
)
def test_interpolations_are_nested_to_a_bounded_depth(tmp_path, text):
    with pytest.raises(ValueError, match="more than 50 `\\$\\{` inside each other"):
        fill_in(text, {})
    path = tmp_path / "deep.yaml"
    path.write_text(f"llm:\n  default:\n    model_name: '{text}'\n")
    with pytest.raises(ConfigError, match=r"deep\.yaml:3: more than 50"):
        load([path], env={}, dotenv=None)


def test_references_mappings_and_names_are_nested_to_a_bounded_depth(tmp_path):
    path = tmp_path / "deep.yaml"
    for value in ("'" + "${a:" * 2000 + "}" * 2000 + "'", "{a: " * 300 + "1" + "}" * 300, "[" * 3000 + "]" * 3000):
        path.write_text(f"llm: {value}\n")
        with pytest.raises(ConfigError, match="nested"):
            load([path], env={}, dotenv=None)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load([], ["llm" + ".a" * 3000 + "=1"], env={}, dotenv=None)


def test_spaces_around_the_value_of_a_dotenv_line_are_no_part_of_it(tmp_path):
    (tmp_path / ".env").write_text("A =  b c \nexport B=  'x  '  \nC=\nD=1 # two\n E\t=\te\n")
    assert read_dotenv(tmp_path / ".env") == {"A": "b c", "B": "x  ", "C": "", "D": "1", "E": "e"}
