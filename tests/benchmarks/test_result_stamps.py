"""Figures on the pages: each says of which commit and day it is, and none is of another form or other data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stamps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import result_stamps

    return result_stamps


def test_every_figure_on_the_pages_is_of_the_form_and_the_data_that_the_code_declares(stamps: Any) -> None:
    assert list(stamps.faults(stamps.stamps())) == []


def test_every_table_of_the_page_bears_its_own_commit_and_day(stamps: Any) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    told = re.findall(r"^`python benchmarks/(\w+)\.py`: commit `(\w{10}\+?)`, (\d{4}-\d\d-\d\d);", page, re.MULTILINE)
    assert len(told) == page.count("\n## ")
    made = stamps.stamps()
    assert told == [(name, made[name]["commit"], made[name]["date"]) for name, _, _ in told]


@pytest.mark.parametrize("name", ["recorded_calls", "decrees", "sample"])
def test_the_declared_data_are_those_at_hand(stamps: Any, name: str) -> None:
    if not (found := stamps.digest_of(stamps.PLACES[name])):
        pytest.skip("these data are not here")
    assert found == stamps.DATA[name]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 7}, "a result of form 7, and the code writes form 1"),
        ({"data": {"recorded_calls": "0" * 32}}, "made from other data than recorded_calls is now"),
        ({"result": "0" * 32}, "the result is not the one that was made at abc"),
    ],
)
def test_a_result_of_another_form_of_other_data_or_changed_by_hand_is_found(
    stamps: Any, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    (tmp_path / "recordings.json").write_text("[]\n")
    good = {
        "commit": "abc",
        "format": 1,
        "data": dict(stamps.DATA),
        "result": stamps.result_digest("recordings", tmp_path),
    }
    assert list(stamps.faults({"recordings": good}, tmp_path)) == []
    assert list(stamps.faults({"recordings": {**good, **change}}, tmp_path)) == [f"recordings: {told}"]


def test_a_result_that_says_nothing_of_itself_is_found(stamps: Any, tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text(json.dumps([]))
    assert list(stamps.faults({}, tmp_path)) == ["store: no entry says of what it is"]
