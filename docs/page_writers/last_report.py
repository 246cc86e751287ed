"""docs/how-to/hosts/last-report.md: what the real programs last answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_writers.markdown import GENERATED, page, table

REPORT = Path(__file__).resolve().parents[2] / "tests" / "hosts_live" / "last_report.json"
BESIDE = REPORT.with_name("last_report_beside.json")
NEWEST = "-newest"  # behind the name of an agent: its newest version, where that is not the pinned one

_HEAD = f"""`make test-hosts` installs each agent from npm, gives it a fresh home, an environment of its own and a
model that follows a script, all on this machine, and goes with it from `hook install` to `hook uninstall`: at the
version that `tests/hosts_live/package.json` pins, and at the newest that npm serves where that is another one. The
project is a repository with a remote; "runs" of a push means that the remote has the commit, "stopped" that it has not
and that the model was sent the reason as the result of its call. {GENERATED}"""

Told = dict[str, dict[str, Any]]  # name of an agent, or of its newest version -> what it came to


def last_report() -> str:
    """The page."""
    told: Told = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.is_file() else {}
    if not told:
        return page("The real programs, last run", _HEAD, "Nothing was run yet.")
    programs = [_program(told, name) for name in told if not name.endswith(NEWEST)]
    steps = list(dict.fromkeys(step for each in told.values() for step in each["steps"]))
    rows = [[step, *(_shown(each["steps"].get(step)) for each in told.values())] for step in steps]
    parts = [_HEAD, table(["program", "pinned", "passed", "newest served", "passed", "run on", "Python"], programs)]
    titles = (f"{each['program']} {each['version']}" for each in told.values())
    parts += ["## Steps", table(["", *titles], rows)]
    beside = json.loads(BESIDE.read_text(encoding="utf-8")) if BESIDE.is_file() else {}
    if beside:
        parts += ["## Beside the steps", table(["test", "came to"], beside.items())]
    if reasons := _reasons(told):
        parts += ["## What a program cannot do without a person at the keys", "\n".join(reasons)]
    return page("The real programs, last run", *parts)


def _program(told: Told, name: str) -> list[str]:
    """The row of an agent: both versions, and how many steps passed with each."""
    pinned = told[name]
    newest = told.get(name + NEWEST, pinned)
    served = newest.get("served", "")
    tried = newest["version"] == served
    return [
        pinned["program"],
        pinned["version"],
        _passed(pinned),
        served or "not asked",
        _passed(newest) if tried else "not run",
        newest["date"],
        newest["python"],
    ]


def _passed(came: dict[str, Any]) -> str:
    results = list(came["steps"].values())
    return f"{results.count('passed')} of {len(results)}"


def _reasons(told: Told) -> list[str]:
    return [
        f"* {each['program']}, {step}: {came.removeprefix('not possible: ')}"
        for each in told.values()
        for step, came in each["steps"].items()
        if came.startswith("not possible")
    ]


def _shown(came: str | None) -> str:
    if came is None:
        return "not reached"
    return "not possible" if came.startswith("not possible") else came
