"""Run every benchmark: prints their tables and writes benchmarks/results/<name>.json, and in made.json of what each is.

    python benchmarks/run_all.py [--quick] [NAME ...]

With --quick the tables are only printed: the results and figures that the documentation shows come from full runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from result_stamps import write_stamp

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NAMES = [
    *("store", "flows", "recordings", "start_up", "hooks", "files_entered"),
    *("judge_agreement", "corrected_rates", "instructions"),
    "guidance_benefit",
    "advice",
    *(
        "compaction_canaries",
        "kept_to_the_end",
        "guard",
        "withdrawals",
        "rules",
        "model_overhead",
        "model_costs",
        "summarization_cost",
        "elasticsearch",
        "serving",
        "mcp_calls",
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look; writes nothing")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    failed = []
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
    for name in options.names or NAMES:
        command = command_of(name, options.quick)
        print(f"\n== {name} ==", flush=True)
        begun, load = time.perf_counter(), os.getloadavg()[0]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
            continue
        if not options.quick:
            write_stamp(name, load)
        written = "nothing written" if options.quick else str(result_of(name).relative_to(HERE.parent))
        print(f"({time.perf_counter() - begun:.0f} s; {written})")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def result_of(name: str) -> Path:
    return RESULTS / f"{name}.json"


def command_of(name: str, quick: bool) -> list[str]:
    """Smaller sizes are no results: without --json a benchmark prints and writes nothing."""
    command = [sys.executable, str(HERE / f"{name}.py")]
    return [*command, "--quick"] if quick else [*command, "--json", str(result_of(name))]


if __name__ == "__main__":
    sys.exit(main())
