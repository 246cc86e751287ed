"""Print what the MCP proxy adds to a call and to the memory of the machine.

    python benchmarks/mcp.py

The same small server is called in turns directly and through the proxy, with 20 rules in the store:
five on each of four tools, or all of them on the one that is called.
Resident memory of the proxy's process stands beside that of a bare interpreter of the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import Table, publish

from toolmem import ToolMem

CALLS = 300
RULES = 20
TOOLS = ("send_email", "delete_file", "search", "run_query")
SERVER = """
import json, sys
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        text = {"type": "text", "text": "sent"}
        print(json.dumps({"id": message["id"], "result": {"content": [text]}}), flush=True)
"""


def started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    environment = {"HOME": str(folder), "PATH": os.defpath}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def answer(process: subprocess.Popen[bytes], to: str, number: int) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    params = {"name": "send_email", "arguments": {"to": to}}
    asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.flush()
    return process.stdout.readline()


def called(process: subprocess.Popen[bytes], number: int) -> float:
    """Milliseconds from a request to its answer."""
    begun = time.perf_counter()
    answer(process, f"user{number}@example.org", number)
    return 1_000 * (time.perf_counter() - begun)


def resident(process: subprocess.Popen[bytes]) -> float:
    """Megabytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1_024


def measured(tools: tuple[str, ...]) -> tuple[float, float, float, float]:
    """Milliseconds of a call without and with the proxy; megabytes of an interpreter, and of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Whoever makes the store has the proxy's home: else the proxy does not trust it.
        os.environ.update(HOME=name, XDG_STATE_HOME=f"{name}/.local/state")
        (folder / "server.py").write_text(SERVER)
        with ToolMem(folder / "m.db") as memory:
            for number in range(RULES):
                tool = tools[number % len(tools)]
                said = f"never use {tool} for person{number}@example.com"
                memory.capture_rules(said, tools=[tool])
            assert len(memory.rules.all_rules().rules) == RULES
        server = [sys.executable, "server.py"]
        proxy = [sys.executable, "-P", "-m", "toolmem", "mcp", "proxy", "--store", "m.db", "--"]
        direct, through = started(server, folder), started([*proxy, *server], folder)
        assert b"toolmem: not run" in answer(through, "person0@example.com", CALLS)
        pairs = [(called(direct, n), called(through, n)) for n in range(CALLS)][20:]
        bare = started([sys.executable, "-c", "import sys; sys.stdin.read()"], folder)
        time.sleep(0.3)
        sizes = resident(bare), resident(through)
        for process in (direct, through, bare):
            process.communicate(timeout=30)
    without, with_proxy = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    return without, with_proxy, *sizes


def main() -> None:
    rows = []
    for what, tools in (("five on the tool", TOOLS), ("all on the tool", TOOLS[:1])):
        without, through, bare, size = measured(tools)
        call = (round(without, 2), round(through, 2), round(through - without, 2))
        rows.append((f"a call, {what}: median, ms", *call))
    rows.append(("resident memory, MB", round(bare), round(size), round(size - bare)))
    columns = ("", "without", "with the proxy", "added")
    table = Table(f"{CALLS} calls, {RULES} rules in the store", columns, rows)
    publish("mcp", "The MCP proxy", table)


if __name__ == "__main__":
    main()
