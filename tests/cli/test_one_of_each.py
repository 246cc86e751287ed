"""What a user reads of one call of one tool in one conversation: nothing says "1 calls"."""

from __future__ import annotations

import html
import json
import re

import pytest

from toolmem.cli import main
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

ASKED = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "a"}'}}
TALK = [
    {"role": "user", "content": "Find a. Never use search for passwords."},
    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
    {"role": "tool", "tool_call_id": "c1", "content": "[1]"},
]
CALL = {"id": "c2", "tool_name": "search", "input": {"q": "b"}, "output": "[2]", "success": True}
SINGULAR = {"is", "was", "has", "this", "its", "as", "class", "bias", "less", "across", "address", "pass"}


def ones_with_a_plural(text: str) -> list[str]:
    """Every "1 calls" and "1 prompt tokens", and not "row 1 has"."""
    found = re.findall(r"(?<![\w.,:/–-])1 (?:[a-z]+ )?[a-z]{2,}s\b", text)
    return [words for words in found if words.split()[-1] not in SINGULAR]


@pytest.fixture
def told(capsys, monkeypatch, tmp_path):
    """Runs a command; what it says on stdout and stderr, unless it is JSON for programs."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        out, err = capsys.readouterr()
        assert int(left.value.code or 0) == code, err
        return out + err

    return run


@pytest.fixture
def model():
    with ModelServer(Script()) as server:
        yield [
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=small",
            f"llm.default.params.base_url={server.openai_url}",
            "llm.default.params.api_key=any-text",
            "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
            "op.summary_tool_memory_op.params.summary_sleep_interval=0",
        ]


def test_the_test_knows_a_plural_and_leaves_other_words():
    assert ones_with_a_plural("1 calls, 1 prompt tokens; 11 calls, 2.1 calls, row 1 has, 1 call was, 1 of 1 rows") == [
        *("1 calls", "1 prompt tokens", "1 rows")
    ]


def test_an_evaluation_of_one_call_counts_in_the_singular(told, model, tmp_path):
    (tmp_path / "talk.jsonl").write_text(json.dumps({"messages": TALK}) + "\n")
    said = told("evaluate", "--input", "talk.jsonl", "--reports", "runs", *model)
    assert ones_with_a_plural(said) == []
    page = re.sub(r"<(style|pre)\b.*?</\1>", "", (tmp_path / "report" / "report.html").read_text(), flags=re.DOTALL)
    for text in (html.unescape(re.sub("<[^>]*>", " ", page)), *re.findall(r'alt="([^"]*)"', page)):
        assert ones_with_a_plural(re.sub(r"\s+", " ", text)) == []
    for shown in (["ledger"], ["ledger", "--reports", "runs"], ["ledger", "--savings", "--reports", "runs"]):
        assert ones_with_a_plural(told(*shown, "vector_store.default.params.path=report/memory.db")) == []


def test_commands_about_one_of_each_count_in_the_singular(told, model, tmp_path):
    def flow(name: str, **request: object) -> None:
        (tmp_path / "request.json").write_text(json.dumps({"workspace_id": "default", **request}))
        told("run", name, "--request", "request.json", *model)  # its answer is worded as clients of ReMe know it

    (tmp_path / "calls.jsonl").write_text(json.dumps(CALL) + "\n")
    (tmp_path / "talk.jsonl").write_text(json.dumps({"messages": TALK}) + "\n")
    flow("add_tool_call_result", tool_call_results=[CALL])
    flow("add_tool_call_result", tool_call_results=[CALL])
    flow("summary_tool_memory", tool_names=["search"])
    flow("summary_tool_memory", tool_names=["search"])
    flow("retrieve_tool_memory", tool_names=["search"])
    flow("vector_store", action="dump", path="one.jsonl")
    flow("vector_store", action="load", path="one.jsonl")
    flow("vector_store", action="list")
    for command in (
        ["tools", "list"],
        ["tools", "show", "search"],
        ["store", "info"],
        ["store", "copy", "--to", "sqlite:copy.db"],
        ["store", "reembed"],
        ["rules", "capture", "--conversations", "talk.jsonl"],
        ["rules", "list"],
        ["judge", "compare", "--csv", "one.csv", "--input", "calls.jsonl", "--judge", "offline", "--judge", "recorded"],
        ["config", "check"],
        ["ledger"],
    ):
        assert ones_with_a_plural(told(*command)) == [], command
    flow("vector_store", action="delete")
