"""A server whose calls say what it does: what it answers and when, and what it says of its own accord.

    python puppet_server.py LOG

Arguments of a call: `tag` (its name here), `says` (messages to write; `{"of": TAG}` in one is the id of that call),
`ends` (a tag: answer that call), `holds` (this one is not answered yet). Each line that it reads goes to LOG.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_ids: dict[str, Any] = {}


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return _ids[value["of"]] if value.keys() == {"of"} else {name: _told(each) for name, each in value.items()}
    return [_told(each) for each in value] if isinstance(value, list) else value


def _say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def _answer(tag: str) -> None:
    _say({"id": _ids[tag], "result": {"content": [{"type": "text", "text": tag}], "isError": False}})


def main() -> None:
    for line in sys.stdin:
        with open(sys.argv[1], "a") as log:
            log.write(line)
        message = json.loads(line)
        if message.get("method") == "tools/call":
            arguments = message["params"]["arguments"]
            _ids[arguments["tag"]] = message["id"]
            for each in arguments.get("says", ()):
                _say(_told(each))
            if "ends" in arguments:
                _answer(arguments["ends"])
            if not arguments.get("holds"):
                _answer(arguments["tag"])
        elif "method" in message and "id" in message:
            _say({"id": message["id"], "result": {"of": message["method"]}})


if __name__ == "__main__":
    main()
