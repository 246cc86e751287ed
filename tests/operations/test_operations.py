"""An operation is described once: one that is added in one place is on every road."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import jsonschema
import pytest

from toolmem import AgentSession, AsyncToolMem, Client, RequestError, ToolMem
from toolmem.cli import main
from toolmem.client.requests import call_of
from toolmem.operations import table
from toolmem.operations.agent_tools import AgentTools
from toolmem.operations.operation import AgentTool, Operation, rpc_operation
from toolmem.operations.table import OPERATIONS, described_flows, register
from toolmem.protocols import Services
from toolmem.server.http.access import AccessControl
from toolmem.server.http.application import application
from toolmem.server.mcp.tool_calls import McpTools, UnderWay
from toolmem.server.rpc import RpcService


@pytest.fixture
def count_calls() -> Iterator[Operation[Any, int]]:
    """How many calls are kept of a tool, described here and nowhere else."""

    @rpc_operation(
        "memory.count_calls",
        reads_only=True,
        agent=AgentTool("memory_count_calls", "Count the calls of a tool.", without=("at_most",)),
    )
    async def count_calls(
        services: Services,
        /,
        tool_name: Annotated[str, "The tool."],
        at_most: int = 100,
        *,
        workspace_id: str | None = None,
    ) -> int:
        """Count the kept calls of a tool."""
        from toolmem.operations.kept_calls import calls

        kept = await calls.run(services, {"tool_names": [tool_name], "workspace_id": workspace_id})
        return min(len(kept), at_most)

    yield register(count_calls)
    del OPERATIONS[count_calls.name]


def test_an_operation_that_is_added_is_a_method_of_toolmem(count_calls: Operation[Any, int]) -> None:
    with ToolMem("memory.db") as mem:
        mem.add([{"tool_name": "t", "output": str(n)} for n in range(3)])
        assert mem.count_calls("t") == 3
        assert mem.count_calls("t", at_most=2) == 2
        assert mem.count_calls.__doc__ == "Count the kept calls of a tool."


async def test_an_operation_that_is_added_is_a_method_of_json_rpc(make_app: Any, count_calls: Any) -> None:
    async with make_app() as app:
        service = RpcService(app.services)
        request = {"jsonrpc": "2.0", "id": 1, "method": "memory.count_calls", "params": ["t"]}
        assert json.loads(await service.dispatch(json.dumps(request)) or "")["result"] == 0
        wrong = {**request, "params": {"tool_name": "t", "at_most": "x"}}
        error = json.loads(await service.dispatch(json.dumps(wrong)) or "")["error"]
        assert error["data"] == {"parameter": "at_most"}
        alias = {**request, "method": "openhuman.memory_count_calls"}
        assert json.loads(await service.dispatch(json.dumps(alias)) or "")["result"] in (0, {"result": 0, "logs": []})


async def test_an_operation_that_is_added_is_served_over_http_and_described_there(
    make_app: Any, count_calls: Any
) -> None:
    async with make_app() as app:
        transport = httpx.ASGITransport(application(app, AccessControl(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            request = {"jsonrpc": "2.0", "id": 1, "method": "memory.count_calls", "params": {"tool_name": "t"}}
            assert (await client.post("/rpc", json=request)).json()["result"] == 0
            document = (await client.get("/openapi.json")).json()
    asked = document["paths"]["/rpc"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"$ref": "#/components/schemas/rpc_count_calls"} in asked["anyOf"]
    models = document["components"]["schemas"]
    assert models["rpc_count_calls"]["description"] == "Count the kept calls of a tool."
    assert models["rpc_count_calls"]["properties"]["method"]["const"] == "memory.count_calls"
    params = models["rpc_count_calls_params"]
    assert params["required"] == ["tool_name"]
    assert params["properties"]["tool_name"]["description"] == "The tool."
    assert params["properties"]["at_most"]["default"] == 100
    jsonschema.validate(request, {**models["rpc_count_calls"], "components": document["components"]})


async def test_a_flow_that_is_composed_in_yaml_is_described_and_checked_as_the_others(make_app: Any) -> None:
    async with make_app(
        "flow.mine.flow_content=retrieve_tool_memory_op",
        'flow.mine.input_schema={"tool_names": {"type": "array", "items": {"type": "string"}}}',
    ) as app:
        transport = httpx.ASGITransport(application(app, AccessControl(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document = (await client.get("/openapi.json")).json()
            refused = await client.post("/mine", json={"workspace_id": "w", "tool_names": [1]})
        names = document["components"]["schemas"]["mine_request"]["properties"]["tool_names"]
        assert (names["type"], names["items"]) == ("array", {"type": "string"})
        assert refused.json()["answer"] == "tool_names: expected a list of strings, got [1]"
        with pytest.raises(RequestError, match="tool_names: expected a list of strings"):
            await app.run_flow("mine", workspace_id="w", tool_names=[1])


def test_an_operation_that_is_added_can_be_asked_of_a_service(count_calls: Any) -> None:
    exchange = call_of(count_calls, "team", "t")
    body = json.loads(exchange.content or b"")
    assert (body["method"], body["params"]) == ("memory.count_calls", {"tool_name": "t", "workspace_id": "team"})
    assert exchange.repeatable


async def test_an_operation_that_is_added_is_a_tool_of_the_agent(make_app: Any, count_calls: Any) -> None:
    (schema,) = [each for each in AgentTools.mcp_schemas() if each["name"] == "memory_count_calls"]
    assert schema["description"] == "Count the calls of a tool."
    assert schema["inputSchema"]["properties"] == {"tool_name": {"type": "string", "description": "The tool."}}
    async with make_app() as app:
        assert await AgentTools(app.services).call("memory_count_calls", {"tool_name": "t"}) == 0
        with pytest.raises(RequestError, match="at_most: unknown"):
            await AgentTools(app.services).call("memory_count_calls", {"tool_name": "t", "at_most": 5})


async def test_an_operation_that_is_added_is_offered_over_mcp(make_app: Any, count_calls: Any) -> None:
    async with make_app() as app:
        tools = McpTools(app, "team", UnderWay())
        (declared,) = [tool for tool in tools.declared if tool.name == "memory_count_calls"]
        assert declared.annotations is not None
        assert declared.annotations.read_only_hint
        result = await tools.call("memory_count_calls", {"tool_name": "t"})
        assert (result["isError"], result["structuredContent"]) == (False, {"result": 0})


def test_two_operations_of_one_name_are_refused(count_calls: Any) -> None:
    @rpc_operation("memory.other")
    async def count_calls(services: Services, /, *, workspace_id: str | None = None) -> int:
        """Another one."""
        return 0

    with pytest.raises(ValueError, match="count_calls"):
        register(count_calls)


def test_a_parameter_has_the_type_the_words_and_the_default_of_the_signature(count_calls: Any) -> None:
    given = count_calls.checked({"tool_name": "t", "at_most": None})
    assert given == {"tool_name": "t", "workspace_id": "default"}
    argument = count_calls.arguments["tool_name"]
    assert (argument.types, argument.description, argument.required) == (("string",), "The tool.", True)
    assert not count_calls.arguments["at_most"].required


@pytest.mark.slow
def test_the_type_checker_sees_a_misspelt_method_and_the_types_of_the_others(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from toolmem import ToolMem\nfrom toolmem.client import Client\n"
        "reveal_type(ToolMem().summarize)\nToolMem().sumarize('search')\nClient().retreive('search')\n"
    )
    options = ["--no-error-summary", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)], capture_output=True, text=True, check=False
    )
    typed, *misspelt = checked.stdout.splitlines()
    assert typed.endswith('-> toolmem.operations.summarize.Summarized"'), checked.stdout
    assert [line.partition("error: ")[2].partition(" has no attribute ")[0] for line in misspelt[:2]] == [
        '"ToolMem"',
        '"Client"',
    ]


def test_every_flow_of_the_default_configuration_is_described_by_its_operations() -> None:
    from toolmem import ToolMemApp

    app = ToolMemApp()
    assert set(described_flows()) == set(app.flows)
    for name, flow in app.settings.flow.items():
        assert flow.description, name
        assert all(argument.description for argument in flow.input_schema.values()), name


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_every_operation_says_what_it_does_and_takes_a_workspace(operation: Operation[Any, Any]) -> None:
    assert operation.description.endswith((".", ":")), operation.description
    assert "workspace_id" in operation.signature.parameters
    assert operation.flow or operation.method
    assert operation in table.OPERATIONS.values()


def test_an_operation_that_is_added_is_run_from_the_command_line(
    count_calls: Any, capsys: Any, monkeypatch: Any
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b'{"tool_name": "t", "workspace_id": "team"}'))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(SystemExit) as left:
        main(["run", "count_calls"])
    assert left.value.code == 0
    assert json.loads(capsys.readouterr().out) == 0


def test_a_path_with_quotes_is_a_path(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "it's.db") as mem:
        mem.add([{"tool_name": "t", "output": "x"}])
    assert (tmp_path / "it's.db").is_file()


async def test_a_session_starts_on_a_toolmem_and_in_its_workspace() -> None:
    async with AsyncToolMem("memory.db", workspace="team") as mem:
        await mem.rules.put("t", "never on Sunday", priority="critical")
        async with await AgentSession.start(mem, tools=["t"]) as session:
            assert "never on Sunday" in session.system_prompt
            assert session.workspace_id == "team"


async def test_every_operation_is_a_method_and_described_by_the_service(make_app: Any) -> None:
    async with make_app() as app:
        transport = httpx.ASGITransport(application(app, AccessControl(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document = (await client.get("/openapi.json")).json()
    for name, operation in OPERATIONS.items():
        assert getattr(ToolMem("memory.db"), name).__doc__ == getattr(Client(), name).__doc__ != ""
        if operation.flow:
            assert f"/{operation.flow}" in document["paths"]
        else:
            assert f"rpc_{name}" in document["components"]["schemas"]
        assert not operation.address or "get" in document["paths"][operation.address]
