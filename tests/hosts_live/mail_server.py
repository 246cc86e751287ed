"""An MCP server with one tool, which works or fails as it is told: stdio, the standard library alone."""

import json
import sys

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "fail": {"type": "boolean"}}, "required": ["to"]}
TOOL = {"name": "send_email", "description": "Send an email.", "inputSchema": SCHEMA}


def result(method: str, params: dict) -> dict:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "mail", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": [TOOL]}
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
