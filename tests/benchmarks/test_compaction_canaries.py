"""A session keeps what its user demanded through compactions that its compressor alone loses it in."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from compaction_kit import LossyTruncationCompactor
from compaction_kit.testing import assert_type_survival, check_compactor

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def _refuse(*_: object) -> None:
    raise OSError("this test asks nobody")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def survival(compactor) -> dict[str, tuple[float, float]]:
    report = check_compactor(compactor, rounds=5)
    return {each.canary_type: (each.round1_survival, each.final_survival) for each in report.findings}


def test_demands_outlive_five_compactions_and_what_demands_nothing_is_kept_as_well_as_before():
    from compaction_canaries import WithAgentSession

    alone, kept = survival(LossyTruncationCompactor()), survival(WithAgentSession())
    assert alone["safety_rule"][1] == 0.0
    assert kept["safety_rule"][1] >= 0.75
    assert kept["hard_constraint"][1] > alone["hard_constraint"][1]
    for kind in ("fact", "goal_state", "user_preference"):
        assert kept[kind] == alone[kind]


def test_the_kits_own_assertion_holds_for_safety_rules():
    from compaction_canaries import WithAgentSession

    assert_type_survival(check_compactor(WithAgentSession()), "safety_rule", min_round1=1.0, min_final=0.75)


def test_the_kits_command_reads_the_compactor_from_the_benchmark():
    code = "import sys; from compaction_kit.cli import main; sys.exit(main(sys.argv[1:]))"
    spec = f"{BENCHMARKS / 'compaction_canaries.py'}:WithAgentSession"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", spec, "--rounds", "2"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "PYTHONPATH": str(BENCHMARKS)},
    )
    assert "AgentSession over lossy-truncation" in done.stdout, done.stderr
    assert done.returncode == 1  # it flags facts, which nobody keeps
