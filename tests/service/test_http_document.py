"""The OpenAPI document and its page: models made from `input_schema`, examples that a real run gives."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from toolmem.service.http.examples import as_text, examples, recorded, replayed


@pytest.fixture(scope="module")
def document(served):
    return httpx.get(served.url + "/openapi.json").json()


async def test_the_examples_are_what_a_real_run_answers():
    asked = recorded()
    now = as_text(await replayed(asked))
    assert now == as_text(asked), "run: python -m toolmem.service.http.examples"


def test_every_flow_has_an_address_a_model_and_examples(document, served):
    flows = httpx.get(served.url + "/health").json()["flows"]
    assert set(flows) == set(examples())
    for flow in flows:
        operation = document["paths"][f"/{flow}"]["post"]
        content = operation["requestBody"]["content"]["application/json"]
        assert content["schema"] == {"$ref": f"#/components/schemas/{flow}_request"}
        answers = operation["responses"]["200"]["content"]["application/json"]
        assert answers["schema"] == {"$ref": "#/components/schemas/FlowResponse"}
        assert content["examples"].keys() == answers["examples"].keys() != set()
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
    assert names["type"] == ["string", "array"]


def test_every_example_request_fits_its_model(document):
    import jsonschema

    for flow, shown in examples().items():
        model = document["components"]["schemas"][f"{flow}_request"]
        for example in shown:
            jsonschema.validate(example.request, model)


def test_each_refusal_is_documented_with_its_model(document):
    responses = document["paths"]["/retrieve_tool_memory"]["post"]["responses"]
    assert set(responses) == {"200", "401", "403", "408", "413", "415", "422", "429", "500", "502", "503"}
    for status in set(responses) - {"200"}:
        schema = responses[status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Refusal"}


def test_every_reference_of_the_document_leads_somewhere(document):
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references == set(document["components"]["schemas"])


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.outside += [value for name, value in attrs if name in ("src", "href") and value and "//" in value]
        if "id" in given:
            self.ids.add(given["id"])
        if given.get("href", "").startswith("#"):
            self.links.add(given["href"][1:])


def test_the_page_loads_nothing_and_runs_nothing(served):
    answer = httpx.get(served.url + "/docs")
    page = Page()
    page.feed(answer.text)
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not page.outside
    assert {"script", "img", "link", "iframe", "form"}.isdisjoint(page.tags)
    assert page.links == page.ids


def test_the_page_names_every_address_argument_and_method(served, document):
    page = httpx.get(served.url + "/docs").text
    for path in document["paths"]:
        assert path in page
    for name in ("tool_call_results", "include_calls", "src_workspace_id", "memory.tool_rules_for_prompt"):
        assert name in page
    assert f"curl -X POST {served.url}/retrieve_tool_memory" in page
    assert "None" not in re.sub(r"<pre>.*?</pre>", "", page, flags=re.DOTALL)


async def test_a_flow_of_ones_own_is_documented_as_it_is_declared(make_app):
    from toolmem.service.http.access import Doorkeeper
    from toolmem.service.http.application import application

    async with make_app(
        "flow.mine.flow_content=retrieve_tool_memory_op",
        "flow.mine.description='Mine <only>'",
        'flow.mine.input_schema={"tool_names": {"type": "array", "required": true}}',
    ) as app:
        transport = httpx.ASGITransport(application(app, Doorkeeper(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document = (await client.get("/openapi.json")).json()
            page = (await client.get("/docs")).text
    assert document["components"]["schemas"]["mine_request"]["properties"]["tool_names"]["type"] == "array"
    assert "examples" not in document["paths"]["/mine"]["post"]["requestBody"]["content"]["application/json"]
    assert "Mine &lt;only&gt;" in page


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
    added, summary, retrieved, put, prompt, health = answers
    assert added["success"] is summary["success"] is retrieved["success"] is True
    assert "limit" in retrieved["metadata"]["memory_list"][0]["content"]
    assert put["result"]["priority"] == "critical"
    assert "- **[critical]** never email Sarah" in prompt["result"]["rendered"]
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
