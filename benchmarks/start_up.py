"""How long a user waits before anything happens: `import toolmem`, a `ToolMem` made, `toolmem --help`.

    python benchmarks/start_up.py [--json FILE]

Processor time of whole processes, the least of several: a start waits for nothing else, and what the machine does
besides is not counted. Import and `ToolMem` are counted over a bare interpreter. Python's compiled files are there, as
pip makes them when it installs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tables import Figure, arguments, show


def least_seconds(command: list[str], runs: int) -> float:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    for _ in range(runs + 1):  # the first one may have to compile
        before = _used()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        taken.append(_used() - before)
    return min(taken)


def _used() -> float:
    """Processor seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = arguments(__doc__)
    runs = 5 if options.quick else 21
    bare = least_seconds([sys.executable, "-c", "pass"], runs)
    imported = least_seconds([sys.executable, "-c", "import toolmem"], runs)
    with tempfile.TemporaryDirectory() as folder:
        made = f"from toolmem import ToolMem; ToolMem({str(Path(folder) / 'memory.db')!r})"
        ready = least_seconds([sys.executable, "-c", made], runs)
    helped = least_seconds([sys.executable, "-m", "toolmem", "--help"], runs)
    basis = f"processor time, least of {runs} processes"
    show(
        [
            Figure("import toolmem, over a bare interpreter", imported - bare, "s", 0.05, "4.0 s", basis),
            Figure("ToolMem(path) ready, over a bare interpreter", ready - bare, "s", 0.4, "", basis),
            Figure("toolmem --help", helped, "s", 0.4, "", basis),
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
