"""How long a user waits before anything happens: `import toolmem`, `toolmem --help`.

    python benchmarks/start_up.py [--json FILE]

Medians over whole processes; the import is counted over a bare interpreter.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tables import Figure, arguments, show


def median_seconds(command: list[str], runs: int) -> float:
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def main() -> None:
    options = arguments(__doc__)
    runs = 5 if options.quick else 21
    bare = median_seconds([sys.executable, "-c", "pass"], runs)
    imported = median_seconds([sys.executable, "-c", "import toolmem"], runs)
    helped = median_seconds([sys.executable, "-m", "toolmem", "--help"], runs)
    basis = f"median of {runs} processes"
    show(
        [
            Figure("import toolmem, over a bare interpreter", imported - bare, "s", 0.15, "4.0 s", basis),
            Figure("toolmem --help", helped, "s", 0.4, "", basis),
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
