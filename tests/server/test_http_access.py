"""Who may come in over HTTP: tokens, addresses, names, web pages."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config import Settings
from toolmem.config.settings import AuthSettings
from toolmem.errors import ConfigError
from toolmem.server.http.access import AccessControl, BearerToken, check_address, host_name, is_loopback, read_token
from toolmem.testing.service_process import ServiceProcess

TOKEN = "s3cret-of-the-team"
ASK = {"workspace_id": "w", "tool_names": "t"}
FLOW = "/retrieve_tool_memory"

tokens = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=80)


# ---------------------------------------------------------------- the token


@given(tokens, tokens)
def test_a_token_admits_itself_and_nothing_else(token, other):
    known = BearerToken(token)
    assert known.admits(f"Bearer {token}")
    assert known.admits(f"bearer  {token}")
    assert known.admits(f"Bearer {other}") == (other == token)
    assert not known.admits(token)
    assert not known.admits(f"Basic {token}")


@given(st.text(max_size=200))
def test_no_header_makes_the_check_raise(header):
    assert not BearerToken(TOKEN).admits(header) or header.strip().endswith(TOKEN)


def test_a_token_is_never_shown():
    assert TOKEN not in repr(BearerToken(TOKEN)) + str(vars(BearerToken(TOKEN)))


def test_the_variable_holds_the_token_and_blank_is_none():
    assert read_token(AuthSettings(), env={}) is None
    assert read_token(AuthSettings(), env={"TOOLMEM_TOKEN": "  "}) is None
    named = read_token(AuthSettings(token_env="MINE"), env={"TOOLMEM_TOKEN": "x", "MINE": f" {TOKEN}\n"})
    assert named is not None
    assert named.admits(f"Bearer {TOKEN}")


def test_a_file_wins_over_the_variable(tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n", encoding="utf-8")
    known = read_token(AuthSettings(token_file=str(tmp_path / "token")), env={"TOOLMEM_TOKEN": "another"})
    assert known is not None
    assert known.admits(f"Bearer {TOKEN}")
    assert not known.admits("Bearer another")


@pytest.mark.parametrize("content", ["", "\n", "two words", "schlüssel", "tab\there"])
def test_a_file_that_holds_no_token_is_refused(tmp_path, content):
    (tmp_path / "token").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="token_file") as caught:
        read_token(AuthSettings(token_file=str(tmp_path / "token")), env={})
    assert not content.strip() or content not in str(caught.value)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(AuthSettings(token_file="nosuch"), env={})


def test_the_token_of_a_dotenv_file_counts(tmp_path, monkeypatch):
    monkeypatch.delenv("TOOLMEM_TOKEN", raising=False)
    (tmp_path / ".env").write_text(f"TOOLMEM_TOKEN={TOKEN}\n", encoding="utf-8")
    known = read_token(AuthSettings())
    assert known is not None
    assert known.admits(f"Bearer {TOKEN}")


# ---------------------------------------------------------------- addresses and names


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "localhost.", "::1", "[::1]", "127.8.9.10"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    assert check_address("http", host, None) == []


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", "127.0.0.1.x"]
)
def test_any_other_address_needs_one(host):
    [problem] = check_address("http", host, None)
    assert problem.startswith(f"http.host: {host}")
    assert check_address("http", host, BearerToken(TOKEN)) == []


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8002", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8002", "::1"),
        ("[::1]", "::1"),
        ("evil.example", "evil.example"),
        ("localhost:80@evil.example", ""),
        ("[::1].evil.example", ""),
        ("[::1]evil.example:80", ""),
        ("[::1]:80.evil.example", ""),
        ("[::1", ""),
        ("[::1%25evil.example]", ""),
        ("[localhost]", ""),
        ("127.0.0.1]", ""),
        ("127.0.0.1:1.evil.example", ""),
        ("127.0.0.1:\u00b2", ""),
        ("127.0.0.1.evil.example", "127.0.0.1.evil.example"),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header_is_read_without_its_port(header, name):
    assert host_name(header) == name


def test_all_problems_of_access_are_told_at_once():
    settings = Settings.model_validate(
        {"http": {"host": "0.0.0.0", "cors_origins": ["*", "example.org", "https://*.example.org"]}}
    )
    with pytest.raises(ConfigError) as caught:
        AccessControl.of(settings, "http")
    assert len(caught.value.problems) == 4


# ---------------------------------------------------------------- a service with a token


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("guarded")
    with ServiceProcess(folder, 'http.cors_origins=["https://tools.example.org"]', token=TOKEN) as service:
        yield service


def ask(service: ServiceProcess, **headers: str) -> httpx.Response:
    return httpx.post(service.url + FLOW, json=ASK, headers=headers)


def test_with_the_token_a_request_is_served(guarded):
    assert ask(guarded, Authorization=f"Bearer {TOKEN}").status_code == 200


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"])
def test_without_the_right_token_nothing_is_served(guarded, authorization):
    answer = ask(guarded, **({"Authorization": authorization} if authorization else {}))
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["success"] is False
    assert TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/nosuch", "/rpc"])
def test_every_address_is_behind_the_token(guarded, path):
    assert httpx.get(guarded.url + path).status_code == 401


def test_without_the_token_health_tells_that_it_is_up_and_no_more(guarded):
    assert httpx.get(guarded.url + "/health").json() == {"status": "ok"}
    assert httpx.get(guarded.url + "/health", headers={"Authorization": "Bearer wrong"}).status_code == 401
    full = httpx.get(guarded.url + "/health", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    assert set(full) == {"status", "version", "store", "models", "embedding_models", "flows", "warnings"}


def test_the_document_says_that_a_token_is_needed(guarded):
    document = httpx.get(guarded.url + "/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["paths"]["/rpc"]["post"]["security"] == [{"token": []}]
    assert {} in document["paths"]["/health"]["get"]["security"]  # whether the service is up may be asked by everybody


def test_with_a_token_the_service_may_go_by_any_name(guarded):
    assert ask(guarded, Authorization=f"Bearer {TOKEN}", Host="memory.example.org").status_code == 200


@pytest.mark.parametrize("path", ["/nosuch", "/docs", "/health"])
def test_a_host_that_is_no_name_is_no_reason_to_fail(guarded, path):
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "[<b>"}
    answer = httpx.get(guarded.url + path, headers=headers)
    assert answer.status_code in (200, 404)
    assert "<b>" not in answer.text


def test_a_configured_web_page_may_ask_and_another_may_not(guarded):
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    ours = httpx.options(guarded.url + FLOW, headers={"Origin": "https://tools.example.org", **asked})
    assert ours.status_code == 200
    assert ours.headers["access-control-allow-origin"] == "https://tools.example.org"
    other = httpx.options(guarded.url + FLOW, headers={"Origin": "https://evil.example", **asked})
    assert "access-control-allow-origin" not in other.headers


def test_the_token_is_in_no_line_of_the_log(guarded):
    ask(guarded, Authorization=f"Bearer {TOKEN}")
    ask(guarded, Authorization=f"Bearer {TOKEN}-almost")
    httpx.get(f"{guarded.url}/health?token={TOKEN}")
    log = guarded.log.read_text(encoding="utf-8")
    assert '"/health"' in log
    assert TOKEN not in log


# ---------------------------------------------------------------- a service without one


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_web_page_of_a_rebound_name_stays_out(served, host):
    answer = httpx.post(served.url + FLOW, json=ASK, headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["metadata"]["errors"][0]["type"] == "WrongHost"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:99", "[::1]:8002"])
def test_the_names_of_this_machine_are_let_in(served, host):
    assert httpx.post(served.url + FLOW, json=ASK, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_what_a_web_page_may_send_to_another_site_is_refused(served, media):
    """These types need no leave of the site; application/json does, and none is given."""
    answer = httpx.post(served.url + FLOW, content=json.dumps(ASK), headers={"Content-Type": media})
    assert answer.status_code == 415
    asked = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    leave = httpx.options(served.url + FLOW, headers=asked)
    assert leave.status_code == 405
    assert "access-control-allow-origin" not in leave.headers
