"""A rule is put with alternatives of tests or with a JSON Schema, on each road; an error names the place in either."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from toolmem import AsyncClient, AsyncToolMem
from toolmem.cli import main
from toolmem.errors import RequestError
from toolmem.server.rpc import RpcService
from toolmem.testing.service_process import ServiceProcess

PUSH = {"command": "git push origin main"}
SPARED = {"command": "git push --dry-run origin main"}
ALTERNATIVES = [{"command": r"^git push\b"}]
FORMS: dict[str, Any] = {
    "a list of alternatives": [{"command": r"^git push( \S+)* main"}, {"command": r"^git push -f"}],
    "when and unless": {"when": ALTERNATIVES, "unless": [{"word": "--dry-run"}]},
    "one alternative": {"when": ALTERNATIVES[0]},
    "with examples": {"when": ALTERNATIVES, "stops": [{"tool": "Bash", "arguments": PUSH}], "passes": []},
    "a JSON Schema": {"properties": {"programs": {"contains": {"const": "git"}}}, "required": ["programs"]},
    "true": True,
}
WRONG: dict[str, tuple[Any, str]] = {
    "an unknown test": ([{"command": "x"}, {"comand": "x"}], "`when[1]`: comand"),
    "a look-around": ([{"command": "(?=x)"}], "`when[0].command`"),
    "a wrong exception": ({"when": ALTERNATIVES, "unless": [{"path": "("}]}, "`unless[0].path`"),
    "a wrong argument": ([{"arg": {"name": "to", "over": "5"}}], "`when[0].arg.over`"),
    "no alternative": ([], "`when`: expected a list of 1 to 20 alternatives"),
    "another key": ({"when": ALTERNATIVES, "unles": []}, "unles"),
    "an alternative alone": ({"command": "^git push"}, "`when.command`"),
    "only exceptions": ({"unless": [{"word": "--dry-run"}]}, "`when.unless`"),
    "a schema that asks nothing": ({"properties": {"programs": {"contains": {"const": "git"}}}}, "`when.properties`"),
    "no schema": ({"properties": {"programs": {"pattern": "(?=x)"}}, "required": ["programs"]}, "`when"),
}
Put = Callable[[Any], Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("service"), token="a-token-for-tests") as service:
        yield service


@pytest.fixture(params=["python", "rpc", "http", "command line"])
async def put(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Any:
    """Puts a rule by one road, and answers it as JSON. Raises RequestError."""
    if request.param == "python":
        async with AsyncToolMem(":memory:") as memory:
            yield _by(memory.rules.put)
    elif request.param == "http":
        service = request.getfixturevalue("service")
        async with AsyncClient(service.url, token="a-token-for-tests", workspace_id="forms") as client:
            yield _by(client.rules.put)
    elif request.param == "rpc":
        async with AsyncToolMem(":memory:") as memory:
            yield _by_rpc(RpcService(memory.app.services))
    else:
        yield _by_command(capsys)


def _by(method: Callable[..., Awaitable[Any]]) -> Put:
    async def put(when: Any) -> dict[str, Any]:
        return dict((await method("Bash", "never push", effect="deny", when=when)).model_dump(mode="json"))

    return put


def _by_rpc(rpc: RpcService) -> Put:
    async def put(when: Any) -> dict[str, Any]:
        params = {"tool_name": "Bash", "rule": "never push", "effect": "deny", "when": when}
        body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": params}
        told = json.loads(await rpc.dispatch(json.dumps(body)) or "")
        if "error" in told:
            raise RequestError(json.dumps(told["error"]), field="when")
        return dict(told["result"])

    return put


def _by_command(capsys: pytest.CaptureFixture[str]) -> Put:
    async def put(when: Any) -> dict[str, Any]:
        def run() -> object:
            try:
                return main(
                    ["rules", "add", "Bash", "never push", "--effect", "deny", "--when", json.dumps(when), "--json"]
                )
            except SystemExit as left:
                return left.code

        code = await asyncio.to_thread(run)
        shown = capsys.readouterr()
        if code:
            raise RequestError(shown.err, field="when")
        return dict(json.loads(shown.out))

    return put


@pytest.mark.parametrize("form", FORMS)
async def test_either_form_is_kept_and_stops_the_call(put: Put, form: str) -> None:
    rule = await put(FORMS[form])
    assert rule["effect"] == "deny"
    async with AsyncToolMem(":memory:") as memory:  # as it was answered it is put elsewhere
        await memory.rules.put("Bash", "never push", effect="deny", when=rule["when"])
        assert (await memory.check_tool_call("Bash", PUSH)).stops
        spares = form in ("when and unless", "a list of alternatives")
        assert (await memory.check_tool_call("Bash", {"command": "git push --dry-run x"})).stops is not spares


@pytest.mark.parametrize("wrong", WRONG)
async def test_an_error_names_the_place_and_nothing_is_kept(put: Put, wrong: str) -> None:
    given, place = WRONG[wrong]
    with pytest.raises(RequestError) as refused:
        await put(given)
    assert place in str(refused.value).replace("\\n", " ")
