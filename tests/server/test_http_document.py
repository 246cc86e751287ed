"""The OpenAPI document and its page: models made from `input_schema`."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest


@pytest.fixture(scope="module")
def document(served):
    return httpx.get(served.url + "/openapi.json").json()


def test_every_flow_has_an_address_and_a_model(document, served):
    flows = httpx.get(served.url + "/health").json()["flows"]
    assert flows
    for flow in flows:
        operation = document["paths"][f"/{flow}"]["post"]
        content = operation["requestBody"]["content"]["application/json"]
        assert content["schema"] == {"$ref": f"#/components/schemas/{flow}_request"}
        answers = operation["responses"]["200"]["content"]["application/json"]
        assert answers["schema"] == {"$ref": "#/components/schemas/FlowResponse"}
        assert operation["summary"]


def test_a_request_model_says_what_the_input_schema_says(document):
    model = document["components"]["schemas"]["vector_store_request"]
    assert model["required"] == ["workspace_id", "action"]
    assert model["additionalProperties"] is False
    assert model["properties"]["action"]["enum"] == [
        "copy",
        "delete",
        "delete_ids",
        "delete_workspace",
        "dump",
        "load",
        "list",
    ]
    assert model["properties"]["path"]["type"] == ["string", "null"]
    assert model["properties"]["memory_ids"]["items"] == {"type": "string"}
    names = document["components"]["schemas"]["summary_tool_memory_request"]["properties"]["tool_names"]
    assert names["type"] == ["string", "array", "null"]


def test_each_refusal_is_documented_with_its_model(document):
    responses = document["paths"]["/retrieve_tool_memory"]["post"]["responses"]
    assert set(responses) == {"200", "401", "403", "408", "409", "413", "415", "422", "429", "500", "502", "503"}
    for status in set(responses) - {"200"}:
        schema = responses[status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Refusal"}


def test_every_reference_of_the_document_leads_somewhere(document):
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references == set(document["components"]["schemas"])


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.written_into_it: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]
        self._in_script = tag == "script"

    def handle_data(self, data):
        if self._in_script and data.strip():
            self.written_into_it.append(data)


@pytest.fixture
def page(served):
    answer = httpx.get(served.url + "/docs")
    assert answer.headers["content-type"].startswith("text/html")
    parsed = Page()
    parsed.feed(answer.text)
    return answer, parsed


def test_the_page_loads_from_the_service_alone(served, page):
    _, parsed = page
    for address in parsed.loaded:
        assert "//" not in address
        loaded = httpx.get(httpx.URL(served.url + "/docs").join(address))
        assert loaded.status_code == 200
        assert loaded.headers["content-type"].split(";")[0] in ("text/css", "text/javascript", "application/javascript")
    assert len(parsed.loaded) == 3


def test_the_browser_is_told_to_load_from_the_service_alone_and_to_run_nothing_else(page):
    answer, parsed = page
    allowed = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert allowed == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert parsed.written_into_it == []


@pytest.mark.parametrize(
    "path", ["/docs/files", "/docs/files/", "/docs/files/../core.py", "/docs/files/%2e%2e/openapi.py"]
)
def test_nothing_but_the_pages_own_files_is_handed_out(served, path):
    assert httpx.get(served.url + path).status_code == 404


def test_in_a_browser_that_reaches_nothing_else_the_page_shows_every_address(served, document, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no browser")
    shown = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
            *("--virtual-time-budget=30000", "--dump-dom", "--enable-logging=stderr"),
            *(f"--user-data-dir={tmp_path}", f"{served.url}/docs#/flows/retrieve_tool_memory"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    paths = re.findall(r'data-path="([^"]*)"', shown.stdout)
    assert set(paths) == set(document["paths"]), shown.stderr[-500:]
    assert "Content Security Policy" not in shown.stderr


async def test_a_flow_of_ones_own_is_documented_as_it_is_declared(make_app):
    from toolmem.server.http.access import AccessControl
    from toolmem.server.http.application import application

    async with make_app(
        "flow.mine.flow_content=retrieve_tool_memory_op",
        "flow.mine.description='Mine <only>'",
        'flow.mine.input_schema={"tool_names": {"type": "array", "required": true}}',
    ) as app:
        transport = httpx.ASGITransport(application(app, AccessControl(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document = (await client.get("/openapi.json")).json()
    assert document["components"]["schemas"]["mine_request"]["properties"]["tool_names"]["type"] == "array"
    assert document["paths"]["/mine"]["post"]["summary"] == "Mine <only>"


# ---------------------------------------------------------------- the page on serving

SERVING = Path(__file__).resolve().parents[2] / "docs" / "serving.md"


def curl_lines() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", SERVING.read_text(encoding="utf-8"), flags=re.DOTALL)
    commands = [command for block in blocks for command in re.split(r"\n\n", block.strip())]
    return [shlex.split(command.replace("\\\n", " ")) for command in commands]


def test_the_curl_lines_of_the_documentation_answer(serve):
    service = serve()
    answers = []
    for words in curl_lines():
        assert words[0] == "curl"
        options = argparse.ArgumentParser()
        options.add_argument("url")
        options.add_argument("-X", default="GET")
        options.add_argument("-H", action="append", default=[])
        options.add_argument("-d")
        given = options.parse_args(words[1:])
        url = given.url.replace("http://127.0.0.1:8002", service.url)
        headers = dict(line.split(": ", 1) for line in given.H)
        answers.append(httpx.request(given.X, url, headers=headers, content=given.d).json())
    added, summary, retrieved, put, prompt, checked, health = answers
    assert added["success"] is summary["success"] is retrieved["success"] is True
    assert "limit" in retrieved["metadata"]["memory_list"][0]["content"]
    assert put["result"]["priority"] == "critical"
    assert "- **[critical]** never email Sarah" in prompt["result"]["rendered"]
    assert checked["metadata"]["decision"]["action"] == "deny"
    assert "never email Sarah" in checked["answer"]
    assert health["status"] == "ok"


def test_the_table_of_limits_holds_the_defaults():
    from toolmem.config.settings import HttpSettings

    rows = re.findall(r"^\| `http\.(\w+)` \| ([^|]+) \|", SERVING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    defaults = HttpSettings()
    for name, told in rows:
        value = getattr(defaults, name)
        assert told.strip().removesuffix(" s") == ("none" if value in (None, []) else str(value).removesuffix(".0")), (
            name
        )
    told_elsewhere = {"host", "port"}
    assert {name for name, _ in rows} == set(HttpSettings.model_fields) - told_elsewhere
