"""What holds for every message."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import grows_at_most
from toolmem.rules.capture.instructions import MAX_SENTENCE, find_instructions

ROOT = Path(__file__).parents[2]
WRITTEN = ROOT.parent / "shared" / "data" / "decrees"
CATALOGUE = ["send_email", "shell", "web_search", "delete_file"]
words = st.sampled_from(
    [
        "never",
        "don't",
        "stop",
        "sending",
        "email",
        "the",
        "shell",
        "only",
        "always",
        "ask",
        "me",
        "before",
        "you",
        "delete",
        "files",
        "please",
        "I",
        "it",
        ".",
        ",",
        ":",
        ";",
        "?",
        "!",
        "\n",
        ">",
        "```",
        '"',
        "不要",
        "永远",
        "别",
        "发邮件",
        "只能",
        "。",
        "，",
        "：",
        "“",
        "”",
        "吗",
    ]
)


@given(st.lists(words, max_size=40).map(" ".join) | st.text(max_size=200))
def test_any_message_is_read_and_every_rule_is_a_part_of_it(message: str) -> None:
    found = find_instructions(message, ran=["shell"], catalogue=CATALOGUE)
    for instruction in (*found.standing, *found.session):
        assert instruction.rule in message.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")
        assert 0 < len(instruction.rule) <= MAX_SENTENCE
        assert instruction.tool_names
        assert set(instruction.tool_names) <= set(CATALOGUE)


@given(st.text(alphabet=st.characters(blacklist_characters='"“”'), max_size=100))
def test_whatever_stands_in_quotes_makes_no_rule(inside: str) -> None:
    one_line = " ".join(inside.split())
    found = find_instructions(f'She wrote "{one_line} never email me".', catalogue=CATALOGUE)
    assert not found.standing


@pytest.mark.parametrize(
    "unit", ["never don't stop ", "x\n", "I don't know. ", "不要，", '"', "' ", "From: x\n", "a.b@", "((", ": "]
)
def test_time_is_linear_in_the_length_of_the_message(unit: str) -> None:
    def read(characters: int) -> Callable[[], object]:
        message = unit * (characters // len(unit))
        return lambda: find_instructions(message, catalogue=CATALOGUE)

    assert grows_at_most(40, read, 20_000, 160_000)  # 8 times the length; a quadratic reader would take 64 times


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("instruction_bench", ROOT / "benchmarks" / "instructions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["instruction_bench"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("part", ["dev", "unseen"])
def test_the_projects_own_sentences_are_read_as_labelled(lang: str, part: str) -> None:
    """Floors a little under the measured figures (benchmarks/instructions.py): a change that costs more is seen."""
    instructions = bench()
    items = [item for item in instructions.labelled_sets(Path("nowhere"))[f"own {part}"] if item.lang == lang]
    assert len(items) > 100
    figures, _ = instructions.measure(items, instructions.ours)
    assert figures["precision"] >= 0.82
    assert figures["recall"] >= 0.85
    assert figures["right_tools"] >= 0.85
    assert figures["session_caught"] >= 0.7


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_sentences_of_another_author_with_other_tools_are_read_as_labelled(lang: str) -> None:
    """Only the part that was looked at: figures of the other part are read by hand, and seldom."""
    instructions = bench()
    items = [item for item in instructions.labelled_sets(Path("nowhere"))["own b dev"] if item.lang == lang]
    assert len(items) > 100
    assert sum(item.catalogue != instructions.CATALOGUE for item in items) > 20
    figures, _ = instructions.measure(items, instructions.ours)
    assert figures["precision"] >= 0.97
    assert figures["recall"] >= 0.88
    assert figures["right_tools"] >= 0.8
    assert figures["session_pinned"] <= 0.05


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_duties_and_passives_bind_as_bans_do(lang: str) -> None:
    """Sentences that an author wrote who did not know the cues; their errors were used to write some."""
    instructions = bench()
    items = [item for item in instructions.labelled_sets(Path("nowhere"))["own c"] if item.lang == lang]
    assert len(items) >= 45
    figures, _ = instructions.measure(items, instructions.ours)
    assert figures["precision"] >= 0.94
    assert figures["recall"] >= 0.68
    assert figures["right_tools"] >= 0.9
    assert figures["session_pinned"] == 0


@pytest.mark.skipif(not WRITTEN.is_dir(), reason="the labelled sentences are not beside the project")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_of_what_is_captured_nearly_all_was_demanded(lang: str) -> None:
    instructions = bench()
    sets = instructions.labelled_sets(WRITTEN)
    items = [item for part in ("dev", "unseen") for item in sets[f"written {part}"] if item.lang == lang]
    figures, _ = instructions.measure(items, instructions.ours)
    assert figures["precision"] >= 0.97
    assert figures["recall"] >= 0.85


def test_an_account_stands_for_good_and_an_order_for_the_session() -> None:
    catalogue = ["create_payment", "cancel_order", "issue_refund"]
    for text in ("不要给 DE89370400440532013000 转账", "Don't make payments to DE89370400440532013000."):
        found = find_instructions(text, catalogue=catalogue)
        assert [each.tool_names for each in found.standing] == [("create_payment",)], text
    for text in ("不要取消订单 202401011234567", "Don't cancel order US13300012."):
        found = find_instructions(text, catalogue=catalogue)
        assert (len(found.standing), len(found.session)) == (0, 1), text


@pytest.mark.parametrize("name", ["instruction_sentences.csv", "instruction_sentences_b.csv"])
def test_the_sentences_are_balanced_and_split_by_the_hash_of_their_id(name: str) -> None:
    instructions = bench()
    with (ROOT / "benchmarks" / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 300
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["split"] == ("dev" if instructions.even_hash(row["id"]) else "unseen")
        assert row["kind"] in ("standing", "session", "none")
        assert bool(row["tools"]) == (row["kind"] != "none")
        assert row["lang"] == ("zh" if any("一" <= c <= "鿿" for c in row["message"]) else "en")


def test_traps_and_plain_cases_are_told_apart() -> None:
    """Short sentences that were looked at while the detector was written; a change that breaks one is seen here."""
    instructions = bench()
    with Path(__file__).with_name("instruction_kinds.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 300
    wrong = [
        f"{row['message']}: {kind}, not {row['kind']}"
        for row in rows
        if (kind := instructions.ours(row["message"], ["web_search"], instructions.CATALOGUE)[0]) != row["kind"]
    ]
    assert len(wrong) <= 0.06 * len(rows), wrong


def test_letter_case_changes_nothing() -> None:
    instructions = bench()
    with Path(__file__).with_name("instruction_kinds.csv").open(encoding="utf-8", newline="") as file:
        messages = [row["message"] for row in csv.DictReader(file)]
    for message in messages:
        kind = instructions.ours(message, ["web_search"], instructions.CATALOGUE)
        for written in (message.upper(), message.lower(), message.capitalize()):
            assert instructions.ours(written, ["web_search"], instructions.CATALOGUE) == kind, written
