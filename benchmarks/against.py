"""Compare the CPU time of this version with an earlier one, in one run. By hand only.

    python benchmarks/against.py [COMMIT] [--folder FOLDER]

The earlier version gets a work tree and an environment of its own, outside this one. Both add the
15,069 calls of the shared recordings in thousands, judged and stored in a file, and summarize all
tools, in turns; then a fresh process adds 36 calls and summarizes one tool. CPU seconds of the
processes, children included. Reading the recordings is left out; imports are in "whole" and "36".
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shared import PROJECT, RECORDINGS, print_table, shared_data

ROUNDS = 3
WORK = """
import gzip, json, resource, sys, tempfile

def cpu():
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)

records = []
for path in sys.argv[1:]:
    with gzip.open(path) as lines:
        records += [json.loads(line) for line in lines]
read = cpu()
from toolmem import ToolMem
with tempfile.TemporaryDirectory() as folder:
    with ToolMem(folder + "/memory.db") as memory:
        memory.add(records[:1])
        started = cpu()
        for at in range(0, len(records), 1000):
            memory.add(records[at : at + 1000])
        added = cpu()
        memory.summarize()
        summarized = cpu()
print(json.dumps({"calls": len(records), "add": added - started, "summarize": summarized - added,
                  "whole": summarized - read}))
"""


SMALL = """
import json, resource, tempfile
from toolmem import ToolMem
with tempfile.TemporaryDirectory() as folder:
    with ToolMem(folder + "/memory.db") as memory:
        memory.add([{"tool_name": "search", "input": {"q": n}, "output": f"{n} hits"}
                    for n in range(36)])
        memory.summarize("search")
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"36": used.ru_utime + used.ru_stime}))
"""


def run(python: Path, folder: Path) -> dict[str, Any]:
    """The figures of one round."""
    paths = [
        str(shared_data() / "recorded_calls" / f"{name}.calls.jsonl.gz") for name in RECORDINGS
    ]
    return _printed(python, folder, WORK, *paths) | _printed(python, folder, SMALL)


def _printed(python: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """What a script prints; HOME is elsewhere, so that nothing is written to the real one."""
    environment = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "XDG_STATE_HOME": str(folder / "state"),
    }
    done = subprocess.run(
        [str(python), "-c", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
        timeout=600,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(commit: str, folder: Path) -> None:
    """Make the earlier version in `folder`, and print both."""
    tree, environment = folder / "tree", folder / "environment"
    subprocess.run(
        ["git", "worktree", "add", "-q", "--detach", tree, commit], check=True, cwd=PROJECT
    )
    try:
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", tree], check=True)
        home = folder / "home"
        home.mkdir()
        rounds = [(run(python, home), run(Path(sys.executable), home)) for _ in range(ROUNDS)]
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tree], check=True, cwd=PROJECT)
    rows = []
    for part in ("add", "summarize", "whole", "36"):
        old, new = (statistics.median(each[side][part] for each in rounds) for side in (0, 1))
        rows.append((part, f"{old:.2f}", f"{new:.2f}", f"{new / old:.3f}"))
    print(f"{rounds[0][0]['calls']:,} calls, median of {ROUNDS} rounds, CPU seconds")
    print_table(("part", commit, "here", "ratio"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the CPU time with an earlier version.")
    parser.add_argument("commit", nargs="?", default="d9819df")
    parser.add_argument("--folder", type=Path, help="where the earlier version is made; kept")
    given = parser.parse_args()
    if given.folder is not None:
        given.folder.mkdir(parents=True)
        compared(given.commit, given.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        compared(given.commit, Path(folder))


if __name__ == "__main__":
    main()
