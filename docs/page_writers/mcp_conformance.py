"""docs/how-to/hosts/mcp-conformance.md: the reference servers and the conformance suite through the proxy, last run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_writers.markdown import GENERATED, page, table

REPORT = Path(__file__).resolve().parents[2] / "tests" / "hosts_live" / "mcp_report.json"

_HEAD = f"""`make test-hosts` starts each server as its users do and asks it the same with and without
[`toolmem mcp proxy`](mcp-proxy.md) before it. A run in which an answer differs fails. {GENERATED}"""
_SERVERS = """The official inspector's command line is the client, the server a command (stdio). Compared is what it
prints of `tools/list` and of each call, errors too; each call is in the memory afterwards."""
_SUITE = """`@modelcontextprotocol/conformance server --suite all` against the server and against the proxy before it,
HTTP on both sides. Compared is every check with its status and its message; passed / failed of each scenario. What
fails fails without the proxy as well: `server-everything` has few of the tools that the suite asks for by name, the
other server has most."""


def mcp_conformance() -> str:
    """The page."""
    told: dict[str, Any] = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.is_file() else {}
    if not told:
        return page("MCP servers through the proxy, last run", _HEAD, "Nothing was run yet.")
    ran = f"Run on {told['date']} with Python {told['python']}, the inspector {told['inspector']}"
    suite = told.get("conformance", {})
    ran += f", the conformance suite {suite['version']}." if suite else "."
    servers = [
        [
            f"`{name}`",
            each["version"],
            str(each["tools"]),
            str(each["calls"]),
            "the same" if each["same"] else "differs",
        ]
        for name, each in told.get("servers", {}).items()
    ]
    parts = [_HEAD, ran, "## Reference servers", _SERVERS]
    parts.append(table(["server", "version", "tools", "calls", "with and without the proxy"], servers))
    names = [name for name in suite if name != "version"]
    scenarios = list(dict.fromkeys(scenario for name in names for scenario in suite[name]))
    rows = [
        [f"`{scenario}`", *(cell for name in names for cell in _both(suite[name][scenario]))] for scenario in scenarios
    ]
    rows.append(["all", *(cell for name in names for cell in _both(_sum(suite[name])))])
    heads = [cell for name in names for cell in (name, "through the proxy")]
    return page(
        "MCP servers through the proxy, last run", *parts, "## Conformance", _SUITE, table(["scenario", *heads], rows)
    )


def _row(name: str, told: dict[str, Any]) -> list[str]:
    same = "the same" if told["same"] else "differs"
    return [f"`{name}`", told["version"], str(told["tools"]), str(told["calls"]), same]


def _both(counted: list[list[int]]) -> list[str]:
    return [f"{passed} / {failed}" for passed, failed in counted]


def _sum(of: dict[str, list[list[int]]]) -> list[list[int]]:
    return [[sum(each[side][kind] for each in of.values()) for kind in (0, 1)] for side in (0, 1)]
