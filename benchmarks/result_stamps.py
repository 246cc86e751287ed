"""Of which code, day, machine and data each result is: `benchmarks/results/made.json`, an entry per result.

`run_all.py` writes them. A result of an older form, of other data, or changed by hand is a fault that a test finds.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
STAMPS = RESULTS / "made.json"
_SHARED = HERE.parents[1] / "shared" / "data"
# Where the columns or the meaning of a result's figures change, its number here goes up; the others are of form 1.
FORMATS: dict[str, int] = {}
PLACES = {
    "recorded_calls": _SHARED / "recorded_calls",
    "decrees": _SHARED / "decrees",
    "sample": HERE.parent / "toolmem" / "data",
}
DATA = {  # the data that figures may come from
    "recorded_calls": "7a99fac8559ee12e3821d5b36a56cf47",
    "decrees": "b175bb190f09900a3b1736594d78e3ea",
    "sample": "fa375af8934b74c1a3e025a77469aab9",
}
READS = {  # what a benchmark reads of these
    **dict.fromkeys(("recordings", "judge_agreement", "model_costs"), ("recorded_calls",)),
    **dict.fromkeys(("corrected_rates", "guidance_benefit", "summarization_cost"), ("recorded_calls", "sample")),
    "guard": ("recorded_calls",),
    "instructions": ("decrees",),
}


def digest_of(place: Path) -> str:
    """Of the names and bytes of a folder's files; "" where it is not here."""
    digest = hashlib.sha256()
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else []
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(place)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32] if files else ""


def stamps() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(STAMPS.read_text(encoding="utf-8"))
    return read


def write_stamp(name: str, load: float) -> None:
    """Of a result that was just written. `load`: the machine's before it was made."""
    import apsw

    made = {
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "format": FORMATS.get(name, 1),
        "data": {each: digest_of(PLACES[each]) for each in READS.get(name, ())},
        "result": result_digest(name),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    kept = stamps() if STAMPS.is_file() else {}
    text = json.dumps(dict(sorted({**kept, name: made}.items())), indent=1)
    STAMPS.write_text(text + "\n", encoding="utf-8")


def result_digest(name: str, results: Path = RESULTS) -> str:
    return hashlib.sha256((results / f"{name}.json").read_bytes()).hexdigest()[:32]


def faults(made: Mapping[str, Mapping[str, Any]], results: Path = RESULTS) -> Iterator[str]:
    """What is wrong with the results that the pages show, a sentence each."""
    there = {path.stem for path in results.glob("*.json")} - {STAMPS.stem}
    for name in sorted(there ^ made.keys()):
        yield f"{name}: {'no entry says' if name in there else 'an entry, and no result, says'} of what it is"
    for name in sorted(there & made.keys()):
        stamp = made[name]
        if stamp["result"] != result_digest(name, results):
            yield f"{name}: the result is not the one that was made at {stamp['commit']}"
        if stamp["format"] != FORMATS.get(name, 1):
            yield f"{name}: a result of form {stamp['format']}, and the code writes form {FORMATS.get(name, 1)}"
        for place in READS.get(name, ()):
            if stamp["data"].get(place, DATA[place]) != DATA[place]:
                yield f"{name}: made from other data than {place} is now"


def _commit() -> str:
    """The commit that is checked out, "+" behind it where the code was changed since."""

    def git(*words: str) -> str:
        ran = subprocess.run(["git", *words], cwd=HERE.parent, capture_output=True, text=True, check=False)
        return ran.stdout.strip()

    changed = git("status", "--porcelain", "--", "toolmem", "benchmarks/*.py", "pyproject.toml")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
