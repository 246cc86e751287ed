"""Writes the generated pages of the documentation from the code, from runs and from benchmark results.

python docs/generate.py          write them
python docs/generate.py --check  exit 1 where a page is not what would be written
"""

from __future__ import annotations

import argparse
import difflib
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from page_writers.benchmarks import benchmarks
from page_writers.command_line import command_line
from page_writers.configuration import configuration
from page_writers.data_types import data_types, files
from page_writers.elasticsearch import elasticsearch
from page_writers.flows import flows
from page_writers.frameworks import frameworks
from page_writers.front_page import front_page
from page_writers.last_report import last_report
from page_writers.limits import limits
from page_writers.mcp_conformance import mcp_conformance
from page_writers.one_call import one_call
from page_writers.ops import ops
from page_writers.python_api import python_api
from page_writers.rpc import rpc

HERE = Path(__file__).resolve().parent
PAGES: dict[str, Callable[[], str]] = {
    "reference/ops.md": ops,
    "reference/configuration.md": configuration,
    "reference/flows.md": flows,
    "reference/command-line.md": command_line,
    "reference/rpc.md": rpc,
    "reference/python.md": python_api,
    "reference/data-types.md": data_types,
    "reference/files.md": files,
    "concepts/one-call.md": one_call,
    "benchmarks.md": benchmarks,
    "elasticsearch.md": elasticsearch,
    "limits.md": limits,
    "how-to/hosts/frameworks.md": frameworks,
    "how-to/hosts/last-report.md": last_report,
    "how-to/hosts/mcp-conformance.md": mcp_conformance,
    "../README.md": front_page,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    logging.getLogger("toolmem").setLevel(logging.ERROR)
    stale = 0
    for name, write in PAGES.items():
        text = write()
        path = HERE / name
        if not options.check:
            path.write_text(text, encoding="utf-8")
            continue
        there = path.read_text(encoding="utf-8") if path.is_file() else ""
        if there != text:
            stale += 1
            diff = difflib.unified_diff(there.splitlines(), text.splitlines(), name, "generated", lineterm="", n=1)
            print("\n".join(list(diff)[:40]), file=sys.stderr)
    if stale:
        print("run: python docs/generate.py", file=sys.stderr)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
