"""Each cue keeps to the examples that stand beside it, and the tables that run are those of the YAML files."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolmem.rules.capture.chinese import CHINESE
from toolmem.rules.capture.english import ENGLISH
from toolmem.rules.capture.instructions import MAX_SENTENCE, find_instructions, readings
from toolmem.rules.capture.sentences import sentences

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "toolmem" / "rules" / "capture"
WRITTEN = {
    f"{language}: {cue['id']}": cue
    for language in ("en", "zh")
    for cue in yaml.safe_load((FOLDER / f"{language}.yaml").read_text(encoding="utf-8"))["cues"]
}
COMPILED = {f"{name}: {cue.id}": cue for name, table in (("en", ENGLISH), ("zh", CHINESE)) for cue in table.cues}
cues = pytest.mark.parametrize(("name", "cue"), WRITTEN.items(), ids=WRITTEN)


def read_by(text: str) -> set[str]:
    """The cues that read an instruction in a text."""
    return {cue.id for sentence in sentences(text) for cue, _ in readings(sentence)}


@cues
def test_a_cue_reads_its_examples(name: str, cue: dict[str, Any]) -> None:
    assert len(cue["examples"]) >= 2
    assert [text for text in cue["examples"] if cue["id"] not in read_by(text)] == []


@cues
def test_a_cue_does_not_read_its_counter_examples_though_they_hold_its_words(name: str, cue: dict[str, Any]) -> None:
    assert cue["counter"]
    assert [text for text in cue["counter"] if cue["id"] in read_by(text)] == []
    words = COMPILED[name].words
    assert all(any(word in text.lower() for word in words) for text in cue["counter"])


def test_no_cue_is_passed_over_that_a_sentence_fits() -> None:
    """Only the cues are tried whose words a text holds: that leaves out none that would match."""
    with (FOLDER.parents[2] / "benchmarks" / "instruction_sentences.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["message"].lower().replace("’", "'") for row in csv.DictReader(file)]
    texts += [text.lower() for cue in WRITTEN.values() for text in (*cue["examples"], *cue["counter"])]
    for language in (ENGLISH, CHINESE):
        for text in texts:
            fitting = {cue.id for cue in language.cues if cue.pattern.search(text)}
            assert fitting <= {cue.id for cue in language.cues_in(text)}, text


@cues
def test_a_cue_takes_no_longer_than_its_text_allows(name: str, cue: dict[str, Any]) -> None:
    """Sentences longer than MAX_SENTENCE are not read; up to there, and twice as far, no text makes a cue slow."""
    pattern = COMPILED[name].pattern
    words = COMPILED[name].words
    for unit in (*cue["examples"], *words, *(f"{word} you " for word in words), "a ", "我"):
        for end in ("", " \n!"):
            text = (unit.lower() * (2 * MAX_SENTENCE))[: 2 * MAX_SENTENCE] + end
            best = min(_seconds(pattern, text) for _ in range(3))
            assert best < 0.1, (unit, best)


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    begun = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - begun


@pytest.mark.parametrize("name", ["en", "zh"])
def test_an_example_is_an_instruction_where_the_tool_is_at_hand(name: str) -> None:
    tools = [
        "send_email",
        "git_push",
        "sql_execute",
        "delete_file",
        "web_search",
        "slack_post_message",
        "create_payment",
    ]
    tools += ["issue_refund", "calendar_create_event", "deploy_service", "read_inbox", "transfer_to_human", "shell"]
    texts = [text for each, cue in WRITTEN.items() if each.startswith(name) for text in cue["examples"]]
    found = [find_instructions(text, ran=["shell"], catalogue=tools) for text in texts]
    missed = [text for text, one in zip(texts, found, strict=True) if not (one.standing or one.session)]
    assert len(missed) <= 0.05 * len(texts), missed


def test_the_tables_that_run_are_made_of_the_yaml_files() -> None:
    checked = subprocess.run([sys.executable, ROOT / "docs" / "capture_tables.py", "--check"], check=False)
    assert checked.returncode == 0, "write them with `python docs/capture_tables.py`"


def test_reading_a_message_loads_neither_yaml_nor_pydantic() -> None:
    code = "import sys\nfrom toolmem.rules.capture.instructions import find_instructions\n"
    code += "find_instructions('Never email Sarah.', catalogue=['send_email'])\n"
    code += "print([name for name in ('yaml', 'pydantic', 'numpy', 'asyncio') if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
