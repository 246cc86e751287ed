"""Judge and summarize what a session left, in a process that the agent need not wait for."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from toolmem.config.sections import OpSection
from toolmem.errors import ToolMemError
from toolmem.hooks.ledger import forget_old_sessions
from toolmem.hooks.state import write_line


def start(store: str, config: str) -> None:
    """Begin it in a session of its own: it holds nothing of the agent's. Raises OSError."""
    isolated = ["-E"] if sys.flags.ignore_environment else []
    command = [sys.executable, "-P", *isolated, "-m", __name__, store, config]
    subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        close_fds=True,
        start_new_session=True,
    )


def main(store: str, config: str) -> None:
    """`config`: a file of settings, "" for the defaults: judged by rules, without a model."""
    import json

    from toolmem.memory.toolmem import ToolMem

    path = f"vector_store.default.params.path={json.dumps(store)}"
    with ToolMem(config or None, overrides=[path]) as memory:
        memory.run("retry_evaluations")
        memory.run("summary_tool_memory")
        kept = memory.services.store(OpSection())
        forget_old_sessions(kept, memory.services.clock.now())


if __name__ == "__main__":
    with suppress(OSError):
        try:
            main(*sys.argv[1:3])
        except ToolMemError as error:
            write_line(f"after a session: {error}")
