"""All recorded calls of the five public recordings: read, judge, store, summarize, in one process.

    python benchmarks/recordings.py [--data DIR] [--json FILE]

The recordings are not part of the project; without the folder the benchmark says so and stops. The judge is the
rule-based check. Time covers reading the files to the last summary; memory is the process's peak. Processor time says
more than seconds on a machine that others use; what is written is told by the system.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

from tables import Figure, arguments, show

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded_calls"


async def whole(files: list[Path], folder: Path) -> int:
    from toolmem import ToolMemApp
    from toolmem.formats.files import read_file

    counted = 0
    async with ToolMemApp(overrides=[f"vector_store.default.params.path='{folder / 'memory.db'}'"]) as app:
        for path in files:
            workspace = path.name.split(".")[0]
            calls = [call for _, call in read_file(path, clock=app.clock).calls]
            counted += len(calls)
            added = await app.run_flow("add_tool_call_result", workspace_id=workspace, tool_call_results=calls)
            assert added.success, added.answer
            names = sorted({call.tool_name for call in calls})
            summarized = await app.run_flow("summary_tool_memory", workspace_id=workspace, tool_names=names)
            assert summarized.success, summarized.answer
    return counted


def main() -> None:
    options = arguments(__doc__)
    files = sorted(DATA.glob("*.calls.jsonl.gz"))
    if not files:
        sys.exit(f"the recordings are not here ({DATA.name} beside the project): nothing to measure")
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        counted = asyncio.run(whole(files, Path(folder)))
        seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    basis = f"{counted:,} calls, one run"
    show(
        [
            Figure("import, judge, store, summarize", seconds, "s", 10, "", basis),
            Figure("processor time, imports included", used.ru_utime + used.ru_stime, "s", None, "", basis),
            Figure("written to the disk", used.ru_oublock * 512 / counted, "bytes a call", None, "", basis),
            Figure("peak memory", used.ru_maxrss / 1024, "MB", 500, "", basis),
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
