"""Sentences that take an instruction back keep to the examples that stand beside their cues."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolmem.rules.capture.lifting import LIFT_CHINESE, LIFT_ENGLISH, Lift, find_lifts
from toolmem.rules.capture.rules_meant import Fit, Meaning, RuleSaid, replaces, rules_meant
from toolmem.rules.capture.sentences import sentences

FOLDER = Path(__file__).parents[2] / "toolmem" / "rules" / "capture"
CUES = {
    f"{language}: {cue['id']}": cue
    for language in ("en", "zh")
    for cue in yaml.safe_load((FOLDER / f"lifting_{language}.yaml").read_text(encoding="utf-8"))["cues"]
}
cues = pytest.mark.parametrize("cue", CUES.values(), ids=CUES)


def lifts_of(text: str) -> list[Lift]:
    return find_lifts(list(sentences(text)))


def meaning(text: str, *rules: str) -> Meaning:
    found = lifts_of(text)
    return rules_meant(found[0], [RuleSaid(rule) for rule in rules]) if found else Meaning()


def takes_back(cue: dict[str, Any], text: str, rule: str) -> bool:
    if cue["lifts"] == "back":
        return any(lift.lifts == "back" for lift in lifts_of(text))
    return meaning(text, rule).surely


@cues
def test_a_cue_takes_back_the_rules_of_its_examples(cue: dict[str, Any]) -> None:
    assert len(cue["examples"]) >= 2
    assert [row for row in cue["examples"] if not takes_back(cue, *row)] == []
    assert [row for row in cue["examples"] if cue["id"] not in {lift.cue for lift in lifts_of(row[0])}] == []


@cues
def test_a_cue_leaves_the_rules_of_its_counter_examples(cue: dict[str, Any]) -> None:
    assert len(cue["counter"]) >= 2
    assert [row for row in cue["counter"] if takes_back(cue, *row)] == []


@cues
def test_a_cue_takes_no_longer_than_its_text_allows(cue: dict[str, Any]) -> None:
    compiled = next(each for grammar in (LIFT_ENGLISH, LIFT_CHINESE) for each in grammar.cues if each.id == cue["id"])
    units = [
        "you may ",
        "no longer ",
        "forget the ",
        "a ",
        "可以",
        "不用再",
        "取消的规则",
        *(text.lower() for text, _ in cue["examples"]),
    ]
    for unit in units:
        text = (unit * 1000)[:1000] + " \n!"
        assert min(seconds(compiled.pattern, text) for _ in range(3)) < 0.2, unit


def seconds(pattern: Any, text: str) -> float:
    begun = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - begun


TWO = ("never email Sarah", "never email Bob")


@pytest.mark.parametrize(
    ("text", "rules", "meant"),
    [
        ("You may email Sarah again.", TWO, (0,)),
        ("给 Bob 发邮件现在可以了，以后都可以给 Bob 发邮件", TWO, (1,)),
        ("You can email her again.", ("never email Sarah", "never use sudo"), (0,)),
        ("You can email Sarah again.", ("never email Sarah at sarah@example.com",), (0,)),
        ("Forget the e-mail rule.", ("never email Sarah", "never use sudo"), (0,)),
        ("You may email anyone again.", ("only email addresses at acme.com",), (0,)),
        ("You may email Sarah again.", ("never email Sarah", "never email Sarah or Bob"), (0,)),
        ("以后可以给 Sarah 发邮件了", TWO, (0,)),
    ],
)
def test_exactly_one_rule_is_meant(text: str, rules: tuple[str, ...], meant: tuple[int, ...]) -> None:
    found = meaning(text, *rules)
    assert (found.meant, found.surely) == (meant, True)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("You can email people again.", TWO),
        ("Forget the rule about email.", TWO),
        ("You don't have to ask any more.", ("ask me before you delete files", "ask me before you push")),
        ("You may email her again.", TWO),
        ("不用再问我了", ("删除文件之前先问我", "发邮件之前先问我")),
    ],
)
def test_several_rules_may_be_meant(text: str, rules: tuple[str, ...]) -> None:
    found = meaning(text, *rules)
    assert len(found.meant) == 2
    assert not found.surely


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("You may email Sarah's assistant again.", "never email Sarah"),
        ("You may email Sarah about the invoice.", "never email Sarah"),
        ("You may read Sarah's email again.", "never email Sarah"),
        ("You may text Sarah again.", "never email Sarah"),
        ("You may email Sarah again.", "never contact Sarah"),
        ("You may email Sarah again.", "never email Sarah or Bob"),
        ("You may push to main, if the tests pass.", "never push to main"),
        ("You can push to main once CI is green.", "never push to main"),
        ("You can push to feature/main-menu now.", "never push to main"),
        ("You can delete the file now.", "never delete files"),
        ("You can push it to main now.", "never push to main"),
        ("You may email Bob again.", "never mention Sarah in emails to Bob"),
        ("You may use the staging database again.", "only use the staging database"),
        ("You can delete files.", "ask me before you delete files"),
        ("“You may email Sarah again.”", "never email Sarah"),
        ("The manual says: you may push to main again.", "never push to main"),
        ("Translate: you may email Sarah again.", "never email Sarah"),
        ("Tell Bob you can push to main again.", "never push to main"),
        ("Maybe you can email Sarah again.", "never email Sarah"),
        ("You may email Sarah again tomorrow.", "never email Sarah"),
        ("You can email Sarah now. Just this once.", "never email Sarah"),
        ("Email Sarah again.", "never email Sarah"),
        ("I lifted the limit, pay whatever is due.", "never email Sarah"),
        ("Stop reading large files, my quota is gone every time.", "never email Sarah"),
        ("It's fine to read and to write.", "You do not run commands without showing them to me"),
        ("Sarah is off limits from now on.", "ask me before you email Sarah"),
        ("邮件只能发给公司内部的人。", "不要发邮件"),
        ("你可以给 Sarah 的助理发邮件了", "永远不要给 Sarah 发邮件"),
        ("等测试通过以后，可以推送到 main", "不要推送到 main"),
    ],
)
def test_a_rule_is_left_alone_by_what_permits_less_or_something_else(text: str, rule: str) -> None:
    assert not meaning(text, rule).surely


def test_a_permission_for_once_is_told_from_one_that_means_no_rule() -> None:
    assert meaning("You may email Sarah this once.", "never email Sarah").fit == Fit.LIMITED
    assert meaning("You may email Sarah this once.", "never use sudo").fit == Fit.NONE


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("ask me before you email Sarah", "never email Sarah"),
        ("only use production", "only use staging"),
        ("never send more than $2,000 in one transfer", "never send more than $5,000 in one transfer"),
        ("never delete files", "ask me before you delete a file"),
        ("only push to main after the tests pass", "never push to main"),
        ("给 Sarah 发邮件之前先问我", "永远不要给 Sarah 发邮件"),
    ],
)
def test_a_newer_instruction_on_the_same_target_takes_the_place_of_the_older(newer: str, older: str) -> None:
    assert replaces(newer, older)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("never email Bob", "never email Sarah"),
        ("never push to develop", "never push to main"),
        ("never email Sarah on weekends", "never email Sarah"),
        ("only push to develop", "never push to main"),
        ("always cc Bob when you email Sarah", "never email Sarah"),
        ("only send emails in the morning", "only send emails to acme.com"),
        ("不要给 Bob 发邮件", "不要给 Sarah 发邮件"),
    ],
)
def test_an_instruction_on_another_target_stands_beside_the_older(newer: str, older: str) -> None:
    assert not replaces(newer, older)


LABELLED = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("name", ["withdrawal_sentences.jsonl", "withdrawal_sentences_b.jsonl"])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_labelled_sentences_take_back_what_is_meant(
    name: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LABELLED)
    labelled = importlib.import_module("withdrawals")
    rows = [row for row in labelled.read(LABELLED / name) if row["lang"] == language]
    found = labelled.measured(rows, await labelled.outcomes(rows))
    assert found["precision"] >= 0.97
    assert found["recall"] >= 0.9
