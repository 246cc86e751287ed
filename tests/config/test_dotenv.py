"""`.env` lies in the working directory, which may be anybody's: what an address, a key and a name from it may do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config import load
from toolmem.config.environment import CAPTURE, FALLBACKS, key_variables
from toolmem.errors import ConfigError

EVIL = "http://evil.example/v1"
ADDRESSES = [
    (key[:2], variable) for key, names in FALLBACKS.items() if key[2] in ("base_url", "hosts") for variable in names
]
MODELS = [(entry, variable) for entry, variable in ADDRESSES if entry[0] != "vector_store"]


def keys_for(entry: tuple[str, str], variable: str) -> tuple[str, ...]:
    """The variables of a key that may go to an address of this variable."""
    return key_variables(*entry, openai=variable.startswith("OPENAI"))


def loaded(dotenv: str, env: dict[str, str], *overrides: str, config: str = ""):
    Path(".env").write_text(dotenv)
    Path("my.yaml").write_text(config)
    return load(["my.yaml"], overrides, env=env)


def key_and_address(found, section: str, name: str = "default") -> tuple[str | None, str | None]:
    params = getattr(found.settings, section)[name].params
    return None if params.api_key is None else params.api_key.get_secret_value(), params.base_url


@pytest.mark.parametrize(("entry", "variable"), MODELS)
def test_a_key_of_the_environment_is_not_sent_to_an_address_of_dotenv(entry, variable):
    section, backend = entry
    keys = keys_for(entry, variable)
    for key in keys:
        with pytest.raises(
            ConfigError, match=rf"{section}\.default\.params\.base_url: \.env gives the address"
        ) as refused:
            loaded(f"{variable}={EVIL}\n", {key: "sk-real"}, f"{section}.default.backend={backend}")
        assert "sk-real" not in str(refused.value)


@pytest.mark.parametrize(("entry", "variable"), MODELS)
def test_an_address_of_dotenv_goes_with_the_key_of_the_same_file(entry, variable):
    section, backend = entry
    keys = keys_for(entry, variable)
    for key in keys:
        for real in ({}, {keys[0]: "sk-real", key: "sk-real"}):
            found = loaded(f"{variable}={EVIL}\n{key}=sk-theirs\n", real, f"{section}.default.backend={backend}")
            assert key_and_address(found, section) == ("sk-theirs", EVIL)


@pytest.mark.parametrize(("entry", "variable"), MODELS)
def test_an_address_of_the_environment_is_used_as_before(entry, variable):
    section, backend = entry
    key = keys_for(entry, variable)[0]
    for dotenv, env in (("", {key: "sk"}), (f"{key}=sk\n", {}), (f"{variable}={EVIL}\n{key}=sk-theirs\n", {key: "sk"})):
        found = loaded(dotenv, {variable: "http://mine/v1", **env}, f"{section}.default.backend={backend}")
        assert key_and_address(found, section) == ("sk", "http://mine/v1")


@pytest.mark.parametrize("section", ["llm", "embedding_model"])
def test_a_key_of_openai_in_dotenv_serves_openai(section):
    found = loaded("OPENAI_API_KEY=sk\n", {}, f"{section}.default.backend=openai_compatible")
    assert key_and_address(found, section) == ("sk", "https://api.openai.com/v1")


def test_a_key_of_dotenv_serves_the_default_address():
    found = loaded("DASHSCOPE_API_KEY=sk\n", {}, "llm.default.backend=dashscope")
    assert key_and_address(found, "llm") == ("sk", None)


CONFIG = "llm: {default: {backend: openai_compatible, model_name: m, params: {base_url: '%s', api_key: '%s'}}}\n"
URLS = ("${oc.env:U}", "http://${oc.env:U}/v1", "${oc.env:NONE,${oc.env:U}}", "${oc.env:U,http://mine/v1}")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("key", ["sk-literal", "${oc.env:K}", "${oc.env:NONE,${oc.env:K}}"])
def test_an_address_that_a_configuration_takes_from_dotenv_gets_no_key_from_elsewhere(url, key):
    with pytest.raises(ConfigError, match=r"\.env gives the address") as refused:
        loaded("U=evil.example\n", {"K": "sk-real"}, config=CONFIG % (url, key))
    assert "sk-real" not in str(refused.value)


@pytest.mark.parametrize("url", URLS)
def test_a_configuration_may_take_both_from_dotenv_or_the_address_from_the_environment(url):
    assert loaded("U=http://theirs/v1\nK=sk\n", {}, config=CONFIG % (url, "${oc.env:K}"))
    assert loaded("U=http://theirs/v1\n", {"U": "http://mine/v1", "K": "sk"}, config=CONFIG % (url, "${oc.env:K}"))


def test_a_reference_to_an_address_of_dotenv_is_one_as_well():
    entry = "{backend: openai_compatible, model_name: m, params: {base_url: '%s', api_key: '%s'}}"
    config = "llm:\n  default: " + entry % ("${oc.env:U}", "${oc.env:T}")
    config += "\n  other: " + entry % ("${llm.default.params.base_url}", "sk") + "\n"
    with pytest.raises(ConfigError, match=r"llm\.other\.params\.base_url: \.env gives the address"):
        loaded("U=http://evil.example/v1\nT=theirs\n", {}, config=config)


def test_an_override_that_takes_an_address_from_dotenv_is_treated_alike():
    with pytest.raises(ConfigError, match=r"\.env gives the address"):
        loaded(
            f"U={EVIL}\n",
            {"DASHSCOPE_API_KEY": "sk-real"},
            *("llm.default.backend=dashscope", "llm.default.params.base_url=${oc.env:U}"),
        )


@pytest.mark.parametrize("credential", ["api_key: secret", "basic_auth: 'me:secret'"])
def test_credentials_of_a_search_cluster_are_not_sent_to_hosts_of_dotenv(credential):
    store = "vector_store: {default: {backend: elasticsearch, params: {%s}}}\n"
    with pytest.raises(ConfigError, match=r"vector_store\.default\.params\.hosts: \.env gives the address"):
        loaded("FLOW_ES_HOSTS=http://evil.example:9200\n", {}, config=store % credential)
    with pytest.raises(ConfigError, match="user and password"):
        loaded("H=evil.example\n", {}, config=store % "hosts: 'http://me:secret@${oc.env:H}:9200'")
    with pytest.raises(ConfigError, match="user and password"):
        loaded(
            "H=evil.example\n", {"PW": "secret"}, config=store % "hosts: ['http://me:${oc.env:PW}@${oc.env:H}:9200']"
        )
    assert loaded("FLOW_ES_HOSTS=http://me:pw@theirs:9200\n", {}, config=store % "timeout: 3")
    assert loaded("FLOW_ES_HOSTS=http://evil.example\n", {"FLOW_ES_HOSTS": "http://mine"}, config=store % credential)


def test_dotenv_names_no_code():
    Path("evil_ops.py").write_text("raise AssertionError('it ran')\n")
    with pytest.raises(ConfigError, match=r"op_modules: comes from \.env"):
        loaded("M=evil_ops\n", {}, config="op_modules: ['${oc.env:M}']\n")
    with pytest.raises(ConfigError, match="it ran"):
        loaded("", {"M": "evil_ops"}, config="op_modules: ['${oc.env:M}']\n")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE"])
def test_variables_that_libraries_read_are_not_handed_on_from_dotenv(variable, monkeypatch):
    monkeypatch.delenv(variable, raising=False)
    found = loaded(f"{variable}={EVIL}\n", {"DASHSCOPE_API_KEY": "sk"}, "llm.default.backend=dashscope")
    assert key_and_address(found, "llm") == ("sk", None)
    assert variable not in os.environ


@pytest.mark.parametrize("config", ["default", Path("default")])
def test_a_file_called_default_is_not_the_packaged_configuration(config):
    Path("evil_ops.py").write_text("raise AssertionError('it ran')\n")
    Path("default").write_text("op_modules: [evil_ops]\n")
    Path("default.yaml").write_text("op_modules: [evil_ops]\n")
    assert load([config], env={}).settings.op_modules == []
    with pytest.raises(ConfigError, match="it ran"):
        load(["./default.yaml"], env={})


@pytest.mark.parametrize("variable", CAPTURE)
def test_dotenv_does_not_stop_the_users_demands_from_being_kept(variable):
    assert loaded(f"{variable}=0\n", {}).settings.rules.capture
    assert not loaded("", {variable: "0"}).settings.rules.capture


def test_what_is_no_file_of_settings_is_refused_and_not_waited_for(tmp_path):
    for make in (
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.mkdir(),
        lambda path: path.write_text("A=1\n" * 300_000),
    ):
        make(tmp_path / ".env")
        with pytest.raises(ConfigError, match=r"\.env: expected a file of at most 1,000,000 bytes"):
            load([], env={})
        (tmp_path / ".env").rename(tmp_path / f"env-{len(list(tmp_path.iterdir()))}")


@given(
    dotenv=st.dictionaries(st.sampled_from(["U", "K", "H"]), st.sampled_from(["http://a", "b", "1", "true", ""])),
    env=st.dictionaries(st.sampled_from(["U", "K"]), st.sampled_from(["http://real", "sk-real"])),
)
def test_whatever_stands_where_a_key_of_the_environment_meets_no_address_of_dotenv(dotenv, env):
    text = "".join(f"{name}={value}\n" for name, value in dotenv.items())
    try:
        found = loaded(text, env, config=CONFIG % ("${oc.env:U,http://default}", "${oc.env:K,none}"))
    except ConfigError:
        return
    key, address = key_and_address(found, "llm")
    if address == dotenv.get("U") and "U" not in env:
        assert key == dotenv.get("K")
        assert "K" not in env
