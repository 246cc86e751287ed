"""The same recordings give the same verdicts, claims and counts as are written down in `golden_outputs.json`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from differences import differences
from golden_outputs import DATASETS, FIGURES, FILE, SHARED, evaluated, figures

REMEDY = "if that is meant, say why in CHANGELOG.md and run `python tests/snapshots/golden_outputs.py --write`"


def changed(name: str, now: dict[str, Any]) -> list[str]:
    return list(differences(json.loads(FILE.read_text("utf-8"))[name], json.loads(json.dumps(now)), name))


def test_the_sample_gives_the_tables_and_the_summary_that_are_written_down() -> None:
    found = changed("sample", evaluated(None))
    assert not found, f"{REMEDY}:\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_a_public_recording_gives_the_tables_and_the_summary_that_are_written_down(name: str) -> None:
    path = SHARED / f"{name}.calls.jsonl.gz"
    if not path.is_file():
        pytest.skip("the folder of public recordings is not there")
    found = changed(name, evaluated(path))
    assert not found, f"{REMEDY}:\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_judge_and_the_capture_of_rules_get_the_figures_that_are_written_down(name: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("the folder of public recordings is not there")
    found = changed(name, figures(name))
    assert not found, f"{REMEDY}:\n" + "\n".join(found)
