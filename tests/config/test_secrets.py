"""Addresses are shown without what may be secret in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import ToolMemApp
from toolmem.config import load
from toolmem.config.hidden_values import masked, masked_value
from toolmem.config.problems import shown
from toolmem.errors import ConfigError
from toolmem.flow.effective import effective


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("https://host/v1?api_key=SECRET", "https://host/v1?api_key=***"),
        ("https://host/v1?SECRET", "https://host/v1?***"),
        ("https://host/v1?a=SECRET&b=SECRET#SECRET", "https://host/v1?a=***&b=***"),
        ("https://host/v1#SECRET", "https://host/v1#***"),
        ("https://me:SECRET@host/v1?k=SECRET", "https://***@host/v1?k=***"),
        ("https://SECRET@host", "https://***@host"),
        ("https://me:SEC@RET@host:1/v1", "https://***@host:1/v1"),
        ("https://me:SEC/RET@host:1/v1", "https://***@host:1/v1"),
        ("https://host/v1?k=SECRET@SECRET", "https://***"),
        ("https://me:SECRET?SECRET@host", "https://***"),
        ("me:SECRET@host/v1", "***@host/v1"),
        ("host/v1?api_key=SECRET", "host/v1?api_key=***"),
        ("llm.x.base_url=https://host?k=SECRET", "llm.x.base_url=https://host?k=***"),
    ],
)
def test_an_address_is_shown_without_user_query_and_fragment(address, seen):
    assert masked(address) == seen
    assert "SEC" not in shown(address)
    assert masked_value({"hosts": [address, 1]}) == {"hosts": [seen, 1]}


@pytest.mark.parametrize(
    "text",
    ["https://host:8000/v1/", "http://[::1]:9200", "sarah@example.com", "at 12:30, why? a=b", "a >> b", "", "{a: b}"],
)
def test_text_without_a_secret_stays_as_it_is(text):
    assert masked(text) == text


SECRET = st.text("ABCDEFGHIJ+/@?#&=;:", min_size=1, max_size=12).map(lambda text: f"XYZ{text}XYZ")


@given(secret=SECRET)
def test_no_character_of_a_key_in_a_query_or_of_a_password_is_shown(secret):
    for address in (f"https://host/v1?k={secret}", f"https://me:{secret}@host/v1"):
        assert "XYZ" not in masked(f"before {address} behind")


def test_values_of_secret_variables_are_hidden_whatever_key_holds_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = {"MY_API_KEY": "k-123456", "DB_PASS": "hunter2!", "PIN_TOKEN": "77", "REGION": "eu-west"}
    path = tmp_path / "my.yaml"
    path.write_text(
        "llm:\n  default:\n    model_name: model-${oc.env:MY_API_KEY}-x\n"
        "http:\n  max_batch: ${oc.env:PIN_TOKEN}\n"
        "flow:\n  mine:\n    flow_content: retrieve_tool_memory_op\n"
        "    description: by ${oc.env:DB_PASS} ${oc.env:REGION}\n"
    )
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    rows = {row.name: row.value for row in effective(ToolMemApp([path]).configured)}
    assert rows["llm.default.model_name"] == "model-***-x"
    assert rows["flow.mine.description"] == "by *** eu-west"
    assert rows["http.max_batch"] == "***"
    assert rows["http.port"] == "8002"
    with pytest.raises(ConfigError) as refused:
        load([path], ["http.port=${oc.env:MY_API_KEY}"], env=env, dotenv=None)
    assert "http.port" in str(refused.value)
    assert "k-123456" not in str(refused.value)
