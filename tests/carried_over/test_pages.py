"""What README, documentation and notebooks of 0.1 show is run as it stands there (`pages`: their code, without prose).

Their configurations, JSON and command lines are read by `tests/docs/test_code_blocks.py`, as those of today's pages.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from toolmem.testing.service_process import ServiceProcess

HERE = Path(__file__).parent
CHANGELOG = " ".join((HERE.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").split())
README = (HERE / "pages" / "readme.md").read_text(encoding="utf-8")
WITH_CELLS = [path for path in sorted((HERE / "pages").glob("*.md")) if "{code-cell}" in path.read_text("utf-8")]
QUICK = {"client", "rules", "how-to-agent-loop", "how-to-write-an-op", "migration-openhuman", "01_evaluate_tool_calls"}

# Page: what it says, what has to be said now, and the words of the changelog that tell so.
TOLD = {
    "02_rule_store": (
        """    assert again.rules == []
    assert [draft.rule for draft in again.deleted] == [sentence]
    assert await store.list_rules("send_email") == []
""",
        "    assert [rule.rule for rule in again.rules] == [sentence]\n",
        "can be said again",
    ),
    "how-to-costs": (
        "--workspace evaluate",
        "--workspace default",
        "evaluations work in the workspace `default`",
    ),
    "migration-openhuman": (
        '["result"]',
        '["result"]["result"]',
        "`{result, logs}` under `openhuman.*` names",
    ),
}


def run(*command: str | Path, **given: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "200"} | given
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def unpack_evaluation(folder: Path) -> None:
    """`evaluation`, which the first notebook shows, and run reports in `runs`."""
    with tarfile.open(HERE / "evaluation.tar.gz") as archive:
        archive.extractall(folder, filter="data")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem not in QUICK)) for path in WITH_CELLS],
)
def test_a_page_runs_as_it_did_but_for_what_the_changelog_tells(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.stem in TOLD:
        said, says, told = TOLD[page.stem]
        assert said in text
        assert told in CHANGELOG
        text = text.replace(said, says)
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    unpack_evaluation(tmp_path)
    ran = run(sys.executable, HERE / "run_page.py", "page.md", TOOLMEM_EVALUATION="evaluation")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("block", [each for each in blocks("python") if "import" in each])
def test_python_of_the_readme_runs(block: str) -> None:
    ran = run(sys.executable, "-c", block)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text(blocks("json")[0], encoding="utf-8")
    (tmp_path / "my.yaml").write_text("op: {summary_tool_memory_op: {params: {recent_call_count: 20}}}\n")
    (tmp_path / "request.json").write_text('{"workspace_id": "team", "tool_names": "search"}')
    (tmp_path / ".toolmem").mkdir()
    (tmp_path / ".toolmem" / "memory.db").write_bytes(gzip.decompress((HERE / "sqlite.db.gz").read_bytes()))
    unpack_evaluation(tmp_path)
    commands = [line.removeprefix("$ ").removeprefix(".venv/bin/") for line in "".join(blocks("console")).splitlines()]
    chosen = [line for line in commands if re.match(r"toolmem (evaluate --input|run|ledger)", line)]
    assert len(chosen) == 3
    for command in chosen:
        ran = run("bash", "-c", command)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_served_memory_answers_the_readmes_requests(tmp_path: Path) -> None:
    (asking,) = blocks("bash")
    with ServiceProcess(tmp_path) as service:
        ran = run(
            "bash", "-c", asking.replace("http://127.0.0.1:8002", service.url).replace("curl", "curl -sS -w '\\n'")
        )
    added, retrieved, pinned = (json.loads(line) for line in ran.stdout.splitlines())
    assert added["success"], added
    assert retrieved["metadata"]["memory_list"][0]["when_to_use"] == "search"
    assert pinned["result"]["rendered"] == ""


def test_the_bill_of_run_reports_is_what_it_was(tmp_path: Path) -> None:
    unpack_evaluation(tmp_path)
    asked = "toolmem ledger --savings --reports runs --workspace evaluate --json"
    answers = run(*asked.split()).stdout, (tmp_path / "savings.json").read_text()
    now, then = (json.loads(text, parse_float=lambda figure: round(float(figure), 12)) for text in answers)
    assert now | {"notes": []} == then | {"notes": []}  # sentences
