"""Print what the pages of the console cost over HTTP, and what a real browser finds on them.

    python benchmarks/console.py

`toolmem serve` runs in a process of its own over 1,000 tools with 100 calls each, 1,000 rules and
1,500 decisions. The CPU time of a page, user and system, is that of this process, the median of 25.
Each page is asked for in turns with the others, by one client on one connection that signed in.
What a browser finds is left out where there is no Chromium.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from console_site import (
    EVIL,
    SCHEMES,
    TOKEN,
    WIDTHS,
    Missing,
    fill,
    look,
    open_chromium,
    sign_in,
    signed_in,
    start,
    stop,
)
from shared import Table, publish

from toolmem import ToolMem
from toolmem.rules.changes import Actor

TOOLS, CALLS, RULES, DECISIONS = 1_000, 100, 1_000, 1_500
ROUNDS = 25
GOALS = "goals 50 ms, 100 for a text that is nowhere, 150 kB"
OUTCOMES = ("failed", "silent", "worked", "no_use", "lost", "unjudged")
ERRORS = ("Error: no such customer", "Error: timed out after 30 s", '{"error": "amount missing"}')
USER = Actor("user", "typed", "from the benchmark")


class Page(NamedTuple):
    """A page as it is listed, and its address."""

    name: str
    address: str


def call(tool: int, number: int) -> dict[str, object]:
    """About 1 kB as JSON. One in five fails, and one in three of these says that it worked."""
    fails = number % 5 == 0
    text = ERRORS[(tool + number) % len(ERRORS)] if fails else f"paid invoice {number}"
    return {
        "tool_name": f"tool_{tool}",
        "id": f"{tool}-{number}",
        "input": {"customer": f"c{tool * 7 % 500}", "amount": number, "note": "as agreed " * 12},
        "output": f"{text} " + "of the account in the ledger of this year " * 8,
        "success": not fails or number % 15 == 0,
        "time_cost": 0.2 + number / 100,
        "token_cost": 40 + number,
        "metadata": {"conversation_id": f"talk {tool}-{number // 20}"},
    }


def fill_store(path: Path) -> list[Page]:
    """Returns the pages that are asked for."""
    with ToolMem(path) as memory:
        for first in range(0, TOOLS, 50):
            tools = range(first, first + 50)
            memory.add([call(tool, number) for tool in tools for number in range(CALLS)])
        memory.summarize()
        user, agent = memory.acting_as(USER), memory.acting_as(Actor("agent", name="model"))
        for n in range(RULES - 100):
            more = {"effect": "deny", "when": [{"text": f"c{n}66"}]}
            rule = user.tool_rule_put(f"tool_{n}", f"Never pay customer c{n}66", **more)
        for n in range(50):
            agent.tool_rule_put(f"tool_{n}", f"Only pay below {n} francs")
            over = user.tool_rule_put(f"tool_{n}", f"Never pay on day {n}")
            memory.rules.change(over, USER, "withdrawn", expires_at=datetime.now(UTC))
        for n in range(DECISIONS):
            tool = n % (RULES - 100)
            given = {"customer": f"c{tool}66", "amount": n}
            decision = memory.check_tool_call(f"tool_{tool}", given, conversation_id=f"talk {n}-0")
            assert decision.action == "deny", decision
    return list(pages(rule.id, decision.id))


def pages(rule: str, decision: str) -> Iterator[Page]:
    """Every kind of page. The rule is one that stopped a call, the decision one because of it."""

    def page(name: str, path: str, /, **query: object) -> Page:
        return Page(name, f"/w/default/{path}?{urlencode(query)}")

    yield page("home", "")
    yield page("tools", "tools")
    yield page("tools, 10th page", "tools", **{"from": 450})
    yield page("tool", "tool", name="tool_7")
    yield page("calls", "calls")
    for outcome in OUTCOMES:
        yield page(f"calls, {outcome.replace('_', ' ')}", "calls", outcome=outcome)
    yield page("calls of a tool", "calls", tool="tool_7")
    yield page("calls of a conversation", "calls", conversation="talk 7-1")
    yield page("calls with a text", "calls", q="zebra crossing")
    yield page("call", "call", tool="tool_7", id="7-55")
    yield page("rules", "rules")
    for state in ("holds", "waiting", "ended"):
        yield page(f"rules, {state}", "rules", state=state)
    yield page("rule", "rule", id=rule)
    yield page("rule with its trial", "rule", id=rule, replay=1)
    yield page("draft, read", "draft", tool_name="tool_7", rule="Never email c9@x.org")
    yield page("decisions", "decisions")
    yield page("decision", "decision", id=decision)
    yield page("search over everything", "search", q="zebra crossing")


def cpu_clock(process: int) -> int:
    """The clock of the CPU time of another process."""
    clock = ctypes.c_int()
    failed = ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(clock))
    assert not failed, "there is no such clock here"
    return clock.value


def measured(path: Path, asked: list[Page]) -> list[tuple[object, ...]]:
    url, process = start(path.parent, token=TOKEN, store=path)
    clock = cpu_clock(process.pid)
    found: dict[str, list[float]] = {page.name: [] for page in asked}
    sizes = {}
    try:
        with signed_in(url) as client:
            for turn in range(ROUNDS + 1):
                for page in asked:
                    began = time.clock_gettime(clock)
                    answer = client.get(page.address).raise_for_status()
                    took = 1000 * (time.clock_gettime(clock) - began)
                    sizes[page.name] = f"{len(answer.content) / 1000:.1f}"
                    if turn:  # the first one is for warming up
                        found[page.name].append(took)
    finally:
        stop(process)
    return [(name, f"{statistics.median(each):.1f}", sizes[name]) for name, each in found.items()]


def in_browser(folder: Path) -> Iterator[tuple[str, str]]:
    """What a browser finds. Raises Missing."""
    with open_chromium() as browser:
        for name, texts, axe in (("plain", ["send_email"], True), ("hostile", EVIL, False)):
            store = folder / name / "memory.db"
            addresses = fill(store, *texts, size=0 if axe else 1_000_000)
            url, process = start(folder / name, token=TOKEN, store=store)
            try:
                page = browser.new_page(bypass_csp=True)
                sign_in(page, url)
                found = look(page, url, addresses, axe=axe)
            finally:
                stop(process)
            for each in found:
                print(each)
            views = len(addresses) * len(WIDTHS) * (len(SCHEMES) if axe else 1)
            faults = "violations of axe-core's rules" if axe else "texts that ran, drew or widened"
            yield f"pages, {name} texts: {faults}", f"{len(found)} in {views} views"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = fill_store(folder / "memory.db")
        what = f"{TOOLS:,} tools x {CALLS} calls, {RULES:,} rules, {DECISIONS:,} decisions"
        rows = measured(folder / "memory.db", asked)
        tables = [Table(f"{what}; {GOALS}", ("page", "CPU ms", "kB"), rows)]
        try:
            tables.append(Table("In Chromium", ("figure", "measured"), list(in_browser(folder))))
        except Missing as missing:
            print(f"nothing was opened in a browser: {missing}")
    publish("console", "Pages of the console", *tables)


if __name__ == "__main__":
    main()
