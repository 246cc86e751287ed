"""What toolmem is good for without any extra."""

from __future__ import annotations

import csv
import json
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolmem.config.extras import EXTRAS, FRAMEWORKS, LARGE, install_line

ROOT = Path(__file__).parents[2]
TABLES = ("calls.csv", "tools.csv", "skips.csv", "errors.csv", "claims.csv")


def requirements(extra: str = "") -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    given = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {canonicalize_name(Requirement(line).name) for line in given}


def test_the_core_names_none_of_what_the_extras_bring():
    for names in EXTRAS.values():
        assert not requirements() & set(map(canonicalize_name, names))


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_packages_that_a_missing_one_is_told_by(extra):
    assert requirements(extra) == set(map(canonicalize_name, EXTRAS[extra]))


@pytest.mark.parametrize("extra", {**FRAMEWORKS, **LARGE})
def test_an_extra_beside_the_others_brings_one_package_alone(extra):
    """They are tried in environments of their own, so that no constraint is about them."""
    (line,) = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition(f"\n{extra} = [")[2].splitlines()[:1]
    assert len(requirements(extra)) == 1
    assert ">=" in line


def test_all_is_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (line,) = project["optional-dependencies"]["all"]
    assert Requirement(line).extras == set(EXTRAS)


def test_every_requirement_is_among_the_constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    constrained = {canonicalize_name(line.partition("==")[0]) for line in lines}
    assert requirements().union(*map(requirements, EXTRAS)) <= constrained


def test_the_lowest_versions_that_are_tried_are_the_lower_bounds():
    """`make lowest` writes them down; CI runs the tests with them."""
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").split()
    tried = {canonicalize_name(name): Version(version) for name, _, version in (line.partition("==") for line in lines)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name not in {**FRAMEWORKS, **LARGE}]
    for line in chain(project["dependencies"], *extras):
        asked = Requirement(line)
        if asked.name != "toolmem" and (not asked.marker or asked.marker.evaluate()):
            (bound,) = (each.version for each in asked.specifier if each.operator == ">=")
            version = tried[canonicalize_name(asked.name)]
            assert version.release[: len(Version(bound).release)] == Version(bound).release, line


def test_a_memory_of_tools_works_in_python(core):
    done = core(
        """
from toolmem import ToolCall, ToolMem

with ToolMem("memory.db") as mem:
    mem.add([ToolCall("search", {"q": "rain", "limit": n}, "Error: limit is at most 10" if n > 10 else "[1]")
             for n in (5, 50, 8, 60, 9)])
    mem.summarize("search")
    print(mem.guidance("search").text)
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    print(mem.prompt(tools=["search", "send_email"]))
    print(len(mem.calls(["search"])), "calls")
"""
    )
    assert done.returncode == 0, done.stderr
    assert "limit is at most 10" in done.stdout
    assert "never email Sarah" in done.stdout
    assert "5 calls" in done.stdout


def test_an_agents_session_works(core):
    done = core(
        """
import asyncio
from toolmem import AgentSession, CallRecorder, ToolMemApp

recorder = CallRecorder()

@recorder.tool
def send(to: str) -> str:
    return f"sent to {to}"

async def main():
    async with ToolMemApp(overrides=["vector_store.default.params.path=':memory:'"]) as app:
        async with await AgentSession.start(app, tools=["send"]) as session:
            send("bob")
            said = {"role": "user", "content": "never use send for Sarah"}
            await session.after_turn([said], calls=recorder.take())
            print(session.messages()[-1]["content"])

asyncio.run(main())
"""
    )
    assert (done.returncode, "Sarah" in done.stdout) == (0, True), done.stderr


def test_a_paid_model_over_http_is_asked_and_paid_by_what_it_states(core):
    done = core(
        """
from toolmem import ToolCall, ToolMem
from toolmem.testing.model_server import ModelServer

with ModelServer() as server:
    overrides = ["llm.default.backend=openai_compatible", "llm.default.model_name=m", "llm.default.params.api_key=k",
                 f"llm.default.params.base_url={server.openai_url}",
                 "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0"]
    with ToolMem(overrides=["vector_store.default.params.path=':memory:'", *overrides]) as mem:
        added = mem.add([ToolCall("search", {"q": "rain"}, "[1]")])
        print(mem.calls(["search"])[0].score, added)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout[:3] in ("0.0", "1.0")


@pytest.mark.parametrize(
    "words", [["--help"], ["evaluate", "--help"], ["mcp", "--help"], ["ledger"], ["rules", "list"]]
)
def test_commands_answer(command, words):
    done = command(*words)
    assert done.returncode == 0, done.stderr


def test_flows_and_rules_run_from_the_command_line(command, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"tool_call_results": [{"tool_name": "search", "output": "[]"}]}))
    assert command("run", "add_tool_call_result", "--request", "r.json", "--workspace", "default").returncode == 0
    assert command("rules", "add", "search", "never search for Sarah").returncode == 0
    assert "never search for Sarah" in command("rules", "list", "--json").stdout
    dry = command("config", "check", "llm.default.backend=dry_run")
    assert dry.returncode == 0, dry.stderr


@pytest.mark.slow
def test_an_evaluation_writes_its_tables_and_a_page_without_figures(command, tmp_path):
    done = command("evaluate", "--limit", "150", "--out", "report")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith(install_line("research"))
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    headings = ("How often each tool worked", "Scores", "Guidance per tool", "What the skip saved")
    assert [heading for heading in headings if f">{heading}</h2>" not in page] == []
    assert "<figure" not in page
    assert "estimated (Qwen" in page
    assert len(list(csv.DictReader((tmp_path / "report" / "calls.csv").open(encoding="utf-8")))) == 150


@pytest.mark.slow
def test_the_tables_are_the_same_bytes_with_and_without_pandas(command, tmp_path):
    for out, absent in (("plain", ["research"]), ("full", [])):
        done = command("evaluate", "--limit", "150", "--out", out, absent=absent)
        assert done.returncode == 0, done.stderr
    for name in TABLES:
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "full" / name).read_bytes(), name
    plain, full = (json.loads((tmp_path / out / "summary.json").read_text()) for out in ("plain", "full"))
    for measured in ("started", "phases", "source", "summaries"):
        assert type(plain.pop(measured)) is type(full.pop(measured))
    assert plain == full
    assert "<figure" in (tmp_path / "full" / "report.html").read_text(encoding="utf-8")
