"""The rule-based judge says the same as long as its number is the same: a verdict in a store is never out of date."""

from __future__ import annotations

import ast
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import get_args

import golden_verdicts
import pytest
from golden_verdicts import FILE, NOT_WRITTEN, REMEDY, golden, problems

from toolmem.judge import rule_based
from toolmem.judge.parameters import Violation
from toolmem.judge.rule_based import RULE_BASED_JUDGE, RuleBasedCheck
from toolmem.readers.error_classes import ERROR_CLASSES

WRITTEN = json.loads(FILE.read_text("utf-8"))
MAKERS = ("in_text", "of_value")
EVALUATIONS = [said[3] for said in WRITTEN["verdicts"].values()]


def test_the_judge_says_what_is_written_down_for_its_number() -> None:
    found = problems(WRITTEN, golden())
    assert not found, "\n".join(found)


def test_the_number_is_the_judges_identity() -> None:
    identity = RuleBasedCheck().identity
    assert (identity.model, identity.prompt_version) == ("rule_based_check", str(RULE_BASED_JUDGE))


@pytest.mark.parametrize("kind", ["verdicts", "tables"])
def test_another_verdict_or_table_under_the_same_number_names_the_remedy(kind: str) -> None:
    now = deepcopy(WRITTEN)
    key = next(iter(now[kind]))
    now[kind][key] = "something else"
    assert problems(WRITTEN, now)[0] == REMEDY
    assert "raise the number RULE_BASED_JUDGE" in REMEDY
    assert key in problems(WRITTEN, now)[1]
    now["rule_based_judge"] += 1
    assert problems(WRITTEN, now) == [NOT_WRITTEN]


def test_a_new_call_needs_no_new_number() -> None:
    now = deepcopy(WRITTEN)
    now["verdicts"]["another call"] = [False, 1.0, "", "Ran.", ""]
    assert problems(WRITTEN, now) == [NOT_WRITTEN]


def test_a_section_that_is_gone_from_a_table_is_a_change() -> None:
    now = deepcopy(WRITTEN)
    del now["tables"]["judge/wording.txt: harmless"]
    assert problems(WRITTEN, now) == [REMEDY, "table judge/wording.txt: harmless: gone"]


def test_a_comment_in_a_table_is_no_change_and_a_pattern_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = golden_verdicts.fingerprints("judge/wording.txt")
    text = (golden_verdicts.ROOT / "toolmem/judge/wording.txt").read_text("utf-8")
    (tmp_path / "toolmem").mkdir()
    monkeypatch.setattr(golden_verdicts, "ROOT", tmp_path)
    (tmp_path / "toolmem/words.txt").write_text(f"# of the judge\n{text}", encoding="utf-8")
    assert golden_verdicts.fingerprints("words.txt") == before
    (tmp_path / "toolmem/words.txt").write_text(text.replace("\nforbidden\n", "\nforbidden\nverboten\n"), "utf-8")
    assert golden_verdicts.fingerprints("words.txt") != before


def test_the_calls_show_every_kind_of_evidence() -> None:
    shown = {match[1] for said in EVALUATIONS if (match := re.search(r"(?:output: |shows )(.+?) at ", said))}
    assert kinds_of_evidence() - {re.sub(r" \d{3}$", "", kind) for kind in shown} == set()


def kinds_of_evidence() -> set[str]:
    """The first words of each piece of evidence that the judge's modules make."""
    folder = Path(rule_based.__file__).parent
    calls = [node for file in folder.glob("*.py") for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    made = [call for call in calls if isinstance(call, ast.Call) and getattr(call.func, "id", "") in MAKERS]
    texts = {call.args[0].value for call in made if isinstance(call.args[0], ast.Constant)}
    return texts | {"exit code", "time-out"}  # these two stand in one variable


def test_the_calls_show_every_class_of_error() -> None:
    assert {said[2] for said in WRITTEN["verdicts"].values()} == {"", *ERROR_CLASSES}


def test_the_calls_show_every_kind_of_verdict() -> None:
    wanted = [
        "Failed by the recorded flag; the output shows no sign of it.",
        "Failed by the recorded flag, and the output shows",
        "flag and output disagree.",
        "but the answer is empty.",
        "printed nothing, as is usual for an action",
        "Ran and answered",
        "The input fits the tool's schema.",
        "The input does not fit the tool's schema:",
        "nothing shows that the call was carried out.",
    ]
    assert [text for text in wanted if not any(text in said for said in EVALUATIONS)] == []
    assert {(said[0], said[1]) for said in WRITTEN["verdicts"].values()} == {(True, 0.0), (False, 0.0), (False, 1.0)}


@pytest.mark.parametrize("violation", get_args(Violation))
def test_the_calls_show_every_way_in_which_an_input_breaks_a_schema(violation: str) -> None:
    told = {
        "unknown_parameter": "is not in the schema",
        "missing_parameter": "is missing",
        "wrong_type": "the schema wants integer",
        "not_in_enum": "the schema allows",
        "out_of_range": "the schema wants at",
        "not_an_object": "the schema wants an object",
    }
    assert any(told[violation] in said for said in EVALUATIONS)
