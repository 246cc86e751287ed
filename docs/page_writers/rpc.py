"""The JSON-RPC methods: parameters, and an example of each from a real run."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from typing import Any

from page_writers.markdown import json_block, page, table

_HEAD = """\
JSON-RPC 2.0 over rules and short memories, batches included; `toolmem serve` answers it over HTTP. Each method is also
known under OpenHuman's name: `memory.tool_rule_put` is `openhuman.memory_tool_rule_put`. `params` is an object of
names, or a list of values in the order of the table, `workspace_id` last; null counts as left out. `workspace_id` may
be given everywhere and is "default" where it is not. In `tools`, names and schemas may stand side by side. Under
OpenHuman's names a result stands in an envelope, `{"result": ..., "logs": [...]}`. The beginning of an `id` will
do, from four characters on, where no other rule's id begins so. The examples are from one real run, in this order;
written by `python docs/generate.py`.
"""
_ID = "6f1c2a44-0d5e-4c1a-9b57-0f2d8a6e3b10"
_RULE = {"tool_name": "send_email", "rule": "never email Sarah at sarah@example.com", "priority": "critical"}
_CALL = {"tool_name": "search", "input": {"query": "rain"}, "output": '["umbrella"]', "success": True, "id": "c-1"}
_HEARD = {"user_message": "and never push to main, ever", "tools_available": ["Bash"]}
_NOTE = {
    "quote": "never push to main",
    "effect": "deny",
    "tools": ["Bash"],
    "when": [{"command": "^git push\\b.*\\bmain\\b"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git push origin main"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git push origin dev"}}],
}
EXAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("memory.tool_rule_put", {**_RULE, "id": _ID, "tags": ["people"]}),
    ("memory.tool_rule_get", {"tool_name": "send_email", "id": _ID}),
    ("memory.tool_rule_list", {"tool_name": "send_email"}),
    ("memory.tool_rules_for_prompt", {"tools": ["send_email", "search"]}),
    ("memory.tool_rules_json", {"tool_name": "send_email"}),
    ("memory.tool_call_check", {"tool_name": "send_email", "input": {"to": "sarah@example.com"}}),
    ("memory.tool_call_advise", {"tool_name": "search", "input": {"q": "rain"}, "error": "Error: query is required"}),
    ("memory.decisions", {"tool_name": "send_email", "limit": 1}),
    ("memory.tool_rule_set_status", {"id": _ID[:8], "status": "withdrawn"}),
    ("memory.tool_rule_review", {}),
    ("memory.tool_rule_replay", {"ids": [_ID[:8]]}),
    ("memory.demand_note", {**_NOTE, **_HEARD}),
    ("memory.demand_lift", {"quote": "you may push to main again", "lifted": "never push to main"}),
    ("memory.tool_rule_delete", {"tool_name": "send_email", "id": _ID}),
    ("memory.store", {"content": "The staging database is called blue.", "id": "staging"}),
    ("memory.recall", {"query": "which database is staging?", "limit": 1}),
    ("memory.forget", {"id": "staging"}),
    ("memory.prompt", {"tools": ["send_email", "search"]}),
    ("memory.tools_list", {}),
    ("memory.tool_show", {"tool_name": "search"}),
    ("memory.calls", {"tool_names": ["search"], "recent": 1}),
    ("memory.ledger", {"by": ["model"]}),
    ("memory.health", {}),
]
_ERRORS: list[tuple[str, str, str]] = [
    ("an unknown method", "memory.tool_rule_putt", "{}"),
    ("a missing parameter", "memory.tool_rule_put", '{"tool_name": "send_email"}'),
    ("an unknown parameter", "memory.tool_rule_list", '{"tool": "send_email"}'),
]
_CODES = """\
| code | meaning |
|---|---|
| -32700 | not JSON, or not UTF-8 |
| -32600 | JSON, and not a request; why stands in `data.reason` |
| -32601 | an unknown method; the nearest one is named in the message |
| -32602 | a parameter is missing, unknown or wrong; its name is in `data.parameter` |
| -32000 | the store failed |
| -32603 | anything else |

`data` is an object where there is one, with these keys alone; -32700, -32601, -32000 and -32603 have none.
"""


def rpc() -> str:
    from toolmem.server.rpc import alias, methods

    answers = asyncio.run(_answers())
    parts = [_HEAD]
    for (name, params), answer in zip(EXAMPLES, answers, strict=False):
        operation = methods()[name]
        arguments = operation.arguments.items()
        rows = [(f"`{key}`", each.in_words(), "yes" if each.required else "no") for key, each in arguments]
        parts += [f"## {name}", f"{operation.description} Also `{alias(name)}`."]
        parts += [table(["parameter", "type", "required"], rows)] if rows else []
        parts += [json_block(_request(name, params)), json_block(_shown(answer))]
    parts += ["## Errors", _CODES]
    told = [*(what for what, _, _ in _ERRORS), "no request"]
    for what, answer in zip(told, answers[len(EXAMPLES) :], strict=True):
        parts += [f"{what[0].upper()}{what[1:]}:", json_block(_shown(answer))]
    return page("RPC methods", *parts)


def _request(name: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}


def _shown(answer: Any) -> Any:
    """Times and ids are fixed in these runs, so everything stands as it came; a similarity is rounded."""
    if isinstance(answer, dict):
        return {key: _shown(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_shown(value) for value in answer]
    return round(answer, 4) if isinstance(answer, float) else answer


async def _answers() -> list[Any]:
    from toolmem.app import ToolMemApp
    from toolmem.server.rpc import RpcService, methods
    from toolmem.testing.clock import ManualClock

    assert {name for name, _ in EXAMPLES} == set(methods()), "each method has one example"
    requests = [json.dumps(_request(name, params)) for name, params in EXAMPLES]
    requests += [json.dumps(_request(name, json.loads(params))) for _, name, params in _ERRORS]
    requests.append(json.dumps({"jsonrpc": "2.0", "id": 1}))
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"vector_store.default.params.path='{folder}/memory.db'"]
        async with ToolMemApp(overrides=overrides, clock=ManualClock()) as app:
            await app.run_flow("add_tool_call_result", workspace_id="default", tool_call_results=[_CALL])
            service = RpcService(app.services)
            answers = [await service.dispatch(request) or "null" for request in requests]
    return [json.loads(_DECISION.sub('"id": "..."', answer.replace(folder, ".toolmem"))) for answer in answers]


_DECISION = re.compile(r'"id": ?"[0-9a-f]{32}"')
