"""A hook that says nothing: it adds what it was told to the file that its first argument names."""

import json
import os
import sys

KEPT = ("CLAUDE_", "CLAUDECODE", "CODEX_", "GEMINI_", "COPILOT_", "CLINE_")

told = {
    "payload": json.loads(sys.stdin.read() or "null"),
    "environment": {name: value for name, value in os.environ.items() if name.startswith(KEPT) and "TOKEN" not in name},
}
with open(sys.argv[1], "a", encoding="utf-8") as record:
    record.write(json.dumps(told) + "\n")
