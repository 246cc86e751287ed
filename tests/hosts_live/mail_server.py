"""An MCP server over stdio, of the standard library alone: a tool that works or fails as it is told, and a user.

`approve` is who Claude Code asks in place of its user (`--permission-prompt-tool`): it says what the first argument of
this program says, allow or deny.
"""

import json
import sys

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "fail": {"type": "boolean"}}, "required": ["to"]}
TOOLS = [
    {"name": "send_email", "description": "Send an email.", "inputSchema": SCHEMA},
    {"name": "approve", "description": "Ask the user.", "inputSchema": {"type": "object"}},
]


def result(method: str, params: dict) -> dict:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "mail", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": TOOLS[: len(sys.argv)]}
    if method == "tools/call" and params["name"] == "approve":
        said = {"behavior": sys.argv[1], "updatedInput": params["arguments"]["input"], "message": "The user said no."}
        return {"content": [{"type": "text", "text": json.dumps(said)}]}
    if method == "tools/call":
        failed = bool(params["arguments"].get("fail"))
        text = "Error: the mailbox is unavailable" if failed else "sent"
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result(asked["method"], asked.get("params") or {})}
        print(json.dumps(answer), flush=True)
