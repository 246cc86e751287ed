"""An MCP server that notes every line it gets, and answers as the tool's name says."""

import json
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin.buffer:
    with open(sys.argv[1], "ab") as got:
        got.write(line)
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    name = params.get("name")
    if method == "tools/call" and name == "silent":
        continue
    if method == "tools/call" and name == "leave":
        sys.exit(7)
    if method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
        if name == "fail":
            text = f"Error: {params['arguments']['path']} does not exist"
            result = {"content": [{"type": "text", "text": text}], "isError": True}
        if name == "fail_with_data":
            result = {"content": [], "structuredContent": {"error": "gone"}, "isError": True}
        if params["arguments"].get("ask") and "requestState" not in params:
            result = {"resultType": "input_required", "requestState": "of the server"}
        say({"id": message["id"], "result": result})
    elif method == "tools/list":
        tool = {"name": "send_email", "description": "Sends.", "inputSchema": {"type": "object"}}
        say({"id": message["id"], "result": {"tools": [tool], "cacheScope": "public"}})
    elif method == "vendor/changes":
        say({"method": "notifications/tools/list_changed"})
    elif "id" in message and method:  # in a layout of its own
        odd = '{"id" : ID,"result":{"rate":1.10, "x":[ ]}}'
        print(odd.replace("ID", json.dumps(message["id"])), flush=True)
