"""docs/how-to/hosts/last-report.md: what the real programs last answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_writers.markdown import GENERATED, page, table

REPORT = Path(__file__).resolve().parents[2] / "tests" / "hosts_live" / "last_report.json"
BESIDE = REPORT.with_name("last_report_beside.json")

_HEAD = f"""`make test-hosts` installs each agent from npm, gives it a fresh home, an environment of its own and a
model that follows a script, all on this machine, and goes with it from `hook install` to `hook uninstall`. The project
is a repository with a remote; "runs" of a push means that the remote has the commit, "stopped" that it has not and that
the model was sent the reason as the result of its call. {GENERATED}"""


def last_report() -> str:
    """The page."""
    told: dict[str, dict[str, Any]] = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.is_file() else {}
    if not told:
        return page("The real programs, last run", _HEAD, "Nothing was run yet.")
    runs = [[each["program"], each["version"], each["date"], each["python"]] for each in told.values()]
    steps = list(dict.fromkeys(step for each in told.values() for step in each["steps"]))
    rows = [[step, *(_shown(each["steps"].get(step)) for each in told.values())] for step in steps]
    parts = [_HEAD, table(["program", "version", "run on", "Python"], runs)]
    parts += ["## Steps", table(["", *(each["program"] for each in told.values())], rows)]
    beside = json.loads(BESIDE.read_text(encoding="utf-8")) if BESIDE.is_file() else {}
    if beside:
        parts += ["## Beside the steps", table(["test", "came to"], beside.items())]
    reasons = [
        f"* {each['program']}, {step}: {came.removeprefix('not possible: ')}"
        for each in told.values()
        for step, came in each["steps"].items()
        if came.startswith("not possible")
    ]
    if reasons:
        parts += ["## What a program cannot do without a person at the keys", "\n".join(reasons)]
    return page("The real programs, last run", *parts)


def _shown(came: str | None) -> str:
    if came is None:
        return "not reached"
    return "not possible" if came.startswith("not possible") else came
