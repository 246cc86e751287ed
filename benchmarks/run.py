"""Run the benchmarks, or those that are named, one after the other; see `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALL = {
    "judge": "judge",
    "guidance": "guidance",
    "cost": "summarization_cost",
    "guard": "guard",
    "demands": "demands",
    "hooks": "hooks",
    "mcp": "mcp",
    "sessions": "sessions",
    "formats": "formats",
    "store": "store",
    "elasticsearch": "distributed",
    "serving": "serving",
    "console": "console",
    "meaning": "meaning",
}


def main() -> int:
    names = sys.argv[1:] or list(ALL)
    if unknown := [name for name in names if name not in ALL]:
        print(f"no benchmark is called {unknown[0]!r}: {', '.join(ALL)}", file=sys.stderr)
        return 2
    failed = []
    for name in names:
        script = Path(__file__).with_name(f"{ALL[name]}.py")
        if subprocess.run([sys.executable, str(script)], cwd=script.parents[1]).returncode:
            failed.append(name)
        print()
    for name in failed:
        print(f"{name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
