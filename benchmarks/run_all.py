"""Run every benchmark: prints their tables and writes benchmarks/results/<name>.json.

python benchmarks/run_all.py [--quick] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import apsw

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NAMES = [
    *("store", "flows", "recordings", "start_up", "judge_agreement", "guidance_evidence", "decrees"),
    *("guidance_benefit", "change_detection"),
    *("rules", "model_overhead", "model_costs", "summarization_cost", "elasticsearch", "serving", "mcp_calls"),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    RESULTS.mkdir(exist_ok=True)
    failed = []
    for name in options.names or NAMES:
        target = RESULTS / f"{name}.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(target)]
        if options.quick:
            command.append("--quick")
        print(f"\n== {name} ==", flush=True)
        begun = time.perf_counter()
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
            continue
        print(f"({time.perf_counter() - begun:.0f} s; {target.relative_to(HERE.parent)})")
    machine = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    (RESULTS / "machine.json").write_text(json.dumps(machine, indent=1) + "\n", encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
