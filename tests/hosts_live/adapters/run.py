"""The contract of the adapters, held against each framework in a virtual environment of its own.

    python tests/hosts_live/adapters/run.py [NAME ...] [--keep] [--report FILE]

Each environment is made under `.hosts/venvs`, with toolmem from this tree and the newest version of the framework that
installs beside it; it is removed again, or left for the next time with `--keep`. Of each framework `contract.py` is
run, and `own_NAME.py` where it has one. The report has a JSON line per framework: versions, date, what passed, failed
and was skipped, each with its reason. A package that cannot be had is skipped. Exit status 1 where something failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
VENVS = ROOT / ".hosts" / "venvs"
REPORT = HERE / "report.jsonl"
# The extra -> the packages that its agent is made of, whose versions are reported.
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "langchain": ("langchain", "langgraph"),
    "openai-agents": ("openai-agents", "openai"),
    "pydantic-ai": ("pydantic-ai-slim",),
    "fastmcp": ("fastmcp", "mcp"),
    "google-adk": ("google-adk",),
    "strands": ("strands-agents",),
    "smolagents": ("smolagents",),
    "llama-index": ("llama-index-core",),
    "claude-agent-sdk": ("claude-agent-sdk",),
    "agentscope": ("agentscope",),
}
_MOST_SECONDS = 900
_VERSIONS = "import importlib.metadata as m, sys; print(*(f'{n}=={m.version(n)}' for n in sys.argv[1:]))"


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold the adapters' contract against the real frameworks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FRAMEWORKS)}; all where none is given")
    parser.add_argument("--keep", action="store_true", help="leave the virtual environments")
    parser.add_argument("--report", type=Path, default=REPORT)
    given = parser.parse_args()
    if unknown := set(given.names) - set(FRAMEWORKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    VENVS.mkdir(parents=True, exist_ok=True)
    shared = VENVS.parent / "shared.db"
    for each in shared.parent.glob("shared.db*"):
        each.unlink()
    told = {each["framework"]: each for each in _read(given.report)}
    for name in given.names or FRAMEWORKS:
        told[name] = result = tried(name, shared)
        print(json.dumps(result, ensure_ascii=False), flush=True)
        if not given.keep:
            shutil.rmtree(VENVS / _module(name), ignore_errors=True)
    lines = [json.dumps(told[name], ensure_ascii=False) for name in FRAMEWORKS if name in told]
    given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(any(told[name]["failed"] for name in given.names or FRAMEWORKS))


def tried(name: str, shared: Path) -> dict[str, Any]:
    """What became of one framework."""
    result: dict[str, Any] = {"framework": name, "versions": [], "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    result |= {"python": ".".join(map(str, sys.version_info[:3])), "passed": 0, "failed": [], "skipped": {}}
    if problem := _installed(name):
        return {**result, "skipped": {problem: 1}}
    module = _module(name)
    versions = _run(name, "-c", _VERSIONS, *FRAMEWORKS[name])
    junit = VENVS / f"{module}.xml"
    pytest = ["-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(HERE), "--confcutdir", str(HERE)]
    pytest += ["-p", "no:cacheprovider", "-o", f"pythonpath={HERE}", f"--junitxml={junit}", str(HERE / "contract.py")]
    pytest += [str(own)] if (own := HERE / f"own_{module}.py").exists() else []
    junit.unlink(missing_ok=True)
    ran = _run(name, *pytest, TOOLMEM_FRAMEWORK=module, TOOLMEM_SHARED_STORE=str(shared))
    result["versions"] = versions.stdout.split()
    if not junit.exists():
        return {**result, "failed": [(ran.stdout + ran.stderr).strip()[-500:]]}
    return {**result, **_outcomes(junit)}


def _module(name: str) -> str:
    return name.replace("-", "_")


def _installed(name: str) -> str:
    """Make the environment of a framework. Why it could not be made; "" where it was."""
    if not (VENVS / _module(name)).exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENVS / _module(name))], check=True)
    quiet = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    pip = [
        str(VENVS / _module(name) / "bin" / "python"),
        *quiet,
        "-e",
        f"{ROOT}[{name}]",
        *FRAMEWORKS[name],
        "pytest>=8.4",
    ]
    made = subprocess.run(pip, capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return ""
    lines = [line for line in made.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
    return f"the package cannot be had: {lines[0].removeprefix('ERROR: ')}"


def _run(name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The Python of a framework's environment, without the keys and settings of whoever runs this."""
    kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
    command = [str(VENVS / _module(name) / "bin" / "python"), "-P", *arguments]
    home = VENVS.parent / "home"
    home.mkdir(parents=True, exist_ok=True)
    own = {**kept, "HOME": str(home), **variables}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=own, cwd=VENVS, timeout=_MOST_SECONDS
    )


_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")


def _outcomes(junit: Path) -> dict[str, Any]:
    failed, skipped, passed = [], Counter[str](), 0
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
        elif (skip := case.find("skipped")) is not None:
            skipped[skip.get("message", "")] += 1
        else:
            passed += 1
    return {"passed": passed, "failed": failed, "skipped": dict(skipped)}


def _read(report: Path) -> list[dict[str, Any]]:
    if not report.exists():
        return []
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines() if line]


if __name__ == "__main__":
    sys.exit(main())
