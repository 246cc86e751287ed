"""OpenAI chat conversations: which message answers which call."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem.errors import RequestError
from toolmem.formats import Imported, read_file, recognize
from toolmem.testing.clock import ManualClock

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def asks(*calls: tuple[str | None, str, Any], **message: Any) -> dict[str, Any]:
    listed = []
    for call_id, name, arguments in calls:
        call: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
        listed.append({"id": call_id, **call} if call_id is not None else call)
    return {"role": "assistant", "content": None, "tool_calls": listed, **message}


def answers(call_id: str | None, content: Any, **message: Any) -> dict[str, Any]:
    given = {} if call_id is None else {"tool_call_id": call_id}
    return {"role": "tool", "content": content, **given, **message}


def says(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def read(tmp_path: Path, *conversations: Any, **options: Any) -> Imported:
    path = tmp_path / "conversations.jsonl"
    path.write_text("\n".join(json.dumps(conversation) for conversation in conversations))
    return read_file(path, clock=ManualClock(NOW), **options)


def talk(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "messages": list(messages), **fields}


def test_a_call_is_joined_with_its_answer_and_the_users_last_message(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        talk(
            {"role": "system", "content": "policy"},
            says("first"),
            {"role": "assistant", "content": "which?"},
            says(
                [{"type": "text", "text": "the"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
            ),
            asks(("x", "search", '{"q": "bread"}')),
            answers("x", "found"),
        ),
    )
    [(row, call)] = imported.calls
    assert row == 0
    assert (call.tool_name, call.input, call.output, call.success) == ("search", {"q": "bread"}, "found", None)
    assert call.context == "the\n[image_url]\nb"
    assert (call.id, call.create_time) == ("c1/x", NOW)
    assert call.metadata == {"conversation_id": "c1", "tool_call_id": "x", "synthesized": ["create_time"]}


def test_parallel_calls_keep_their_order_whatever_the_order_of_answers(tmp_path: Path) -> None:
    messages = [asks(("a", "t1", "{}"), ("b", "t2", "{}")), answers("b", "2"), answers("a", "1")]
    assert [(row, call.output) for row, call in read(tmp_path, talk(*messages)).calls] == [(0, "1"), (1, "2")]


def test_a_call_id_used_again_in_a_conversation_joins_turn_by_turn(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        talk(
            asks(("call_0", "t", '{"n": 1}')),
            answers("call_0", "one"),
            asks(("call_0", "t", '{"n": 2}')),
            asks(("call_0", "t", '{"n": 3}')),
            answers("call_0", "three"),
        ),
    )
    assert [(call.input, call.output, call.id) for _, call in imported.calls] == [
        ({"n": 1}, "one", "c1/call_0"),
        ({"n": 3}, "three", "c1/call_0#2"),
    ]
    assert imported.unanswered == 1
    assert "1 call has no answer and was left out" in imported.notes


def test_parallel_calls_with_one_id_are_answered_in_order(tmp_path: Path) -> None:
    messages = [asks(("", "t", "1"), ("", "t", "2")), answers("", "one"), answers("", "two")]
    calls = [call for _, call in read(tmp_path, talk(*messages)).calls]
    assert [(call.input, call.output, call.id) for call in calls] == [("1", "one", None), ("2", "two", None)]


def test_the_same_conversation_twice_gives_the_same_ids(tmp_path: Path) -> None:
    one = talk(asks(("call_0", "t", "{}")), answers("call_0", "one"))
    other = talk(asks(("call_0", "t", "{}")), answers("call_0", "other"))
    imported = read(tmp_path, one, one, other)
    assert [call.id for _, call in imported.calls] == ["c1/call_0", "c1/call_0", "c1/call_0#2"]


def test_a_conversation_without_an_id_gives_its_calls_none(tmp_path: Path) -> None:
    messages = [asks(("x", "t", "{}")), answers("x", "one")]
    for conversation in (messages, {"messages": messages}):
        [(_, call)] = read(tmp_path, conversation).calls
        assert call.id is None
        assert call.metadata["conversation_id"].startswith("sha256:")
        assert call.metadata["synthesized"] == ["conversation_id", "create_time"]


def test_conversations_without_an_id_that_look_alike_are_two(tmp_path: Path) -> None:
    """What failed at the end of the one was not repaired at the beginning of the other."""
    messages = [asks(("x", "t", "{}")), answers("x", "one")]
    told = [call.conversation_id for _, call in read(tmp_path, messages, messages, messages).calls]
    assert len(set(told)) == 3
    assert told == [call.conversation_id for _, call in read(tmp_path, messages, messages, messages).calls]


def test_functions_of_the_old_form_are_joined_by_name(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        talk(
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": '{"a": 1}'}},
            {"role": "function", "name": "old", "content": "done"},
            functions=[{"name": "old", "parameters": {"type": "object"}}],
        ),
    )
    [(_, call)] = imported.calls
    assert (call.tool_name, call.input, call.output, call.id) == ("old", {"a": 1}, "done", None)
    assert [tool.name for tool in imported.tools] == ["old"]


def test_a_custom_tool_call_gives_its_text(tmp_path: Path) -> None:
    call = {"id": "x", "type": "custom", "custom": {"name": "code", "input": "print(1)"}}
    imported = read(tmp_path, talk({"role": "assistant", "tool_calls": [call]}, answers("x", "1")))
    assert [(call.tool_name, call.input) for _, call in imported.calls] == [("code", "print(1)")]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ('"text"', "text"),
        ("", {}),
        (None, {}),
        ("null", {}),
        ({"a": 1}, {"a": 1}),
        ("{'a': 'python'}", "{'a': 'python'}"),
        ('{"a": ', '{"a": '),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("5", "5"),
        ("[" * 100_000, "[" * 100_000),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
    ],
)
def test_arguments_that_are_not_json_stay_text(tmp_path: Path, arguments: Any, kept: Any) -> None:
    [(_, call)] = read(tmp_path, talk(asks(("x", "t", arguments)), answers("x", ""))).calls
    assert call.input == kept


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, "b"], "a\nb"),
        ({"rows": [1]}, '{"rows": [1]}'),
        (5, "5"),
    ],
)
def test_answers_of_every_shape_become_text(tmp_path: Path, content: Any, text: str) -> None:
    [(_, call)] = read(tmp_path, talk(asks(("x", "t", "{}")), answers("x", content))).calls
    assert call.output == text


def test_answers_without_a_call_are_named(tmp_path: Path) -> None:
    messages = [answers("early", "?", name="t"), asks(("x", "t", "{}")), answers("x", "1"), answers("x", "again")]
    imported = read(tmp_path, talk(*messages))
    assert len(imported.calls) == 1
    assert [failure.tool_name for failure in imported.failures] == ["t", ""]
    assert "line 1: message 1 answers call 'early'" in imported.failures[0].error
    assert "message 4" in imported.failures[1].error


def test_bad_lines_and_bad_messages_take_nothing_with_them(tmp_path: Path) -> None:
    path = tmp_path / "conversations.jsonl"
    good = talk(5, "text", asks((None, "t", "{}")), answers(None, "1"), asks(("y", " ", "{}")), answers("y", "2"))  # type: ignore[arg-type]
    path.write_text("\n".join(["noise", json.dumps({"messages": "none"}), json.dumps(good), "{"]))
    imported = read_file(path, clock=ManualClock(NOW))
    assert [call.output for _, call in imported.calls] == ["1"]
    errors = "\n".join(failure.error for failure in imported.failures)
    for part in (
        "line 1: not JSON",
        "line 2: not a conversation",
        "line 3: message 1 is not",
        "tool_name: blank",
        "line 4",
    ):
        assert part in errors


def test_times_of_messages_are_used_where_there_are_any(tmp_path: Path) -> None:
    messages = [
        asks(("x", "t", "{}"), timestamp="2026-02-01 10:00:00"),
        answers("x", "1"),
        asks(("y", "t", "{}"), created_at="soon"),
        answers("y", "2"),
    ]
    imported = read(tmp_path, talk(*messages), time_zone="Asia/Shanghai")
    first, second = [call for _, call in imported.calls]
    assert first.create_time == datetime(2026, 2, 1, 2, tzinfo=UTC)
    assert "synthesized" not in first.metadata
    assert (second.create_time, second.metadata["synthesized"]) == (NOW, ["create_time"])
    assert (imported.naive_times, imported.timeless) == (1, 1)


def test_declared_tools_are_collected_once_and_differences_said(tmp_path: Path) -> None:
    def declared(description: str) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "t", "description": description}}]

    messages = [asks(("x", "t", "{}")), answers("x", "1")]
    imported = read(tmp_path, *(talk(*messages, id=str(n), tools=declared(d)) for n, d in enumerate("aab")))
    assert [(tool.name, tool.description) for tool in imported.tools] == [("t", "a")]
    assert "declared in more than one way, the first declaration is used: t" in imported.notes


def test_one_conversation_may_be_a_whole_file(tmp_path: Path) -> None:
    messages = [says("go"), asks(("x", "t", "{}")), answers("x", "1")]
    two = [{"messages": messages}, {"messages": messages}]
    documents: list[tuple[Any, int]] = [(messages, 1), ({"messages": messages}, 1), (two, 2)]
    for document, count in documents:
        path = tmp_path / "conversation.json"
        path.write_text(json.dumps(document, indent=2))
        assert recognize(path) == "openai"
        assert [call.output for _, call in read_file(path, clock=ManualClock(NOW)).calls] == ["1"] * count


def test_limit_counts_calls(tmp_path: Path) -> None:
    conversation = talk(*(m for n in range(5) for m in (asks((str(n), "t", "{}")), answers(str(n), str(n)))))
    imported = read(tmp_path, conversation, {**conversation, "id": "c2"}, limit=7)
    assert [row for row, _ in imported.calls] == list(range(7))
    assert imported.rows == 7


def test_conversations_without_an_answered_call_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="1 conversation, 1 call without an answer"):
        read(tmp_path, talk(asks(("x", "t", "{}"))))


def test_an_id_of_any_length_can_be_stored(tmp_path: Path) -> None:
    imported = read(tmp_path, talk(asks(("x" * 3000, "t", "{}")), answers("x" * 3000, "1")))
    assert imported.calls[0][1].id is not None
    assert len(imported.calls[0][1].id) < 200


@pytest.mark.parametrize(
    "content", ["toolmem: not run. No.", [{"type": "text", "text": "Error: toolmem: not run. No."}]]
)
def test_an_answer_that_is_a_guards_reason_is_a_denied_call(tmp_path: Path, content: Any) -> None:
    messages = [says("write to Sarah"), asks(("a", "send_email", "{}"), ("b", "send_email", "{}"))]
    imported = read(tmp_path, talk(*messages, answers("a", content), answers("b", "sent")))
    assert [call.evaluation_status for _, call in imported.calls] == ["denied", "pending"]
