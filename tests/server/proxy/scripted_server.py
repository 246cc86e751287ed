"""A server of the standard library alone, which answers in ways that no library writes, known to the byte.

    python scripted_server.py [LOG]

Each line that it reads goes to LOG as it came.
"""

from __future__ import annotations

import json
import sys

ODD = (
    b'{ "result" : {"content":[{"type":"text","text":"caf\\u00e9 \xc3\xa9","odd":1.10}],"isError":false,'
    b'"structuredContent":{"big":123456789012345678901234567890,"small":1e-400,"one":1.0,"same":1,"same":2},'
    b'"unknown":{"x":[1E5,-0.0]}} ,"jsonrpc":"2.0", "extra":null, "id":%s}\n'
)
TOOLS = (
    b'{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"odd","x-new":1.50,"inputSchema":{"type":"object"}},'
    b'{"description":"Sends \\/ mail.","name":"send_email","inputSchema":{"type":"object"}}],'
    b'"ttlMs":5e3,"cacheScope":"public","odd":1e2}}\n'
)


def answer(line: bytes) -> bytes:
    message = json.loads(line)
    method, id = message.get("method"), json.dumps(message.get("id")).encode()
    if method == "tools/list":
        return TOOLS % id
    if method == "tools/call" and message["params"]["name"] == "broken":
        return b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool","data":{"n":1.0}}}\n' % id
    if (
        method == "tools/call"
        and message["params"]["arguments"].get("asks")
        and "requestState" not in message["params"]
    ):
        asks = b'{"q":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}}'
        told = b'"resultType":"input_required","inputRequests":%s,"requestState":"of-the-server"' % asks
        return b'{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' % (id, told)
    if method == "tools/call":
        return ODD % id
    if method == "noise":
        return b'this is no message\n{"jsonrpc":"2.0","id":%s,"result":{}}\r\n' % id
    if method == "ask/roots":
        return b'{"jsonrpc":"2.0","id":"s-1","method":"roots/list","_x":1.0}\n'
    if method is not None and "id" in message:
        return b'{"id":%s,"jsonrpc":"2.0","result":{"of":"%s","n":1.000}}\n' % (id, method.encode())
    if method == "notifications/change":
        return b'{"method":"notifications\\/tools\\/list_changed","jsonrpc":"2.0"}\n'
    return b""


def main() -> None:
    for line in sys.stdin.buffer:
        if len(sys.argv) > 1:
            with open(sys.argv[1], "ab") as log:
                log.write(line)
        sys.stdout.buffer.write(answer(line))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
