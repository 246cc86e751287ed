"""How long a user waits before anything happens: `import toolmem`, a `ToolMem` made, `toolmem --help`.

    python benchmarks/start_up.py [--json FILE]

Medians over whole processes; import and `ToolMem` are counted over a bare interpreter. Python's compiled files are
there, as pip makes them when it installs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import Figure, arguments, show


def median_seconds(command: list[str], runs: int) -> float:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])  # the first one may have compiled


def main() -> None:
    options = arguments(__doc__)
    runs = 5 if options.quick else 21
    bare = median_seconds([sys.executable, "-c", "pass"], runs)
    imported = median_seconds([sys.executable, "-c", "import toolmem"], runs)
    with tempfile.TemporaryDirectory() as folder:
        made = f"from toolmem import ToolMem; ToolMem({str(Path(folder) / 'memory.db')!r})"
        ready = median_seconds([sys.executable, "-c", made], runs)
    helped = median_seconds([sys.executable, "-m", "toolmem", "--help"], runs)
    basis = f"median of {runs} processes"
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
