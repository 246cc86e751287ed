"""Chat messages are read alike from a file, for rules, and in a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import grows_at_most
from toolmem.engine.store_file import MachineClock
from toolmem.errors import RequestError
from toolmem.formats import read_file
from toolmem.readers.chat import read_chat, text_of
from toolmem.rules.turns import turns_of_messages
from toolmem.session.chat_messages import records_of, user_message_of

Call = tuple[str, Any, str]  # name, arguments, output


def asks(*calls: tuple[str | None, str, Any]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [
            {"function": {"name": name, "arguments": arguments}} | ({} if call_id is None else {"id": call_id})
            for call_id, name, arguments in calls
        ],
    }


def answers(call_id: str | None, content: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content} | ({} if call_id is None else {"tool_call_id": call_id})


def from_a_file(messages: list[Any], folder: Path) -> list[Call]:
    path = folder / "talk.json"
    path.write_text(json.dumps({"messages": messages}))
    return [(call.tool_name, call.input, call.output) for _, call in read_file(path, clock=MachineClock()).calls]


def in_a_session(messages: list[Any]) -> list[Call]:
    return [(each["tool_name"], each["input"], each["output"]) for each in records_of(read_chat(messages))]


def for_rules(messages: list[Any]) -> list[tuple[str, str]]:
    return [(use.name, use.output_summary) for turn in turns_of_messages(messages) for use in turn.tool_calls]


OLD = {"role": "assistant", "function_call": {"name": "t", "arguments": '{"a": 1}'}}
CUSTOM = {"role": "assistant", "tool_calls": [{"id": "x", "custom": {"name": "t", "input": "print(1)"}}]}
CASES: dict[str, tuple[list[Any], list[Call]]] = {
    "answers in another order": (
        [asks(("a", "t", "{}"), ("b", "u", "{}")), answers("b", "2"), answers("a", "1")],
        [("t", {}, "1"), ("u", {}, "2")],
    ),
    "calls without ids": (
        [asks((None, "t", "1"), (None, "t", "2")), answers(None, "1"), answers(None, "2")],
        [("t", "1", "1"), ("t", "2", "2")],
    ),
    "one id for two calls": (
        [asks(("x", "t", "1"), ("x", "t", "2")), answers("x", "1"), answers("x", "2")],
        [("t", "1", "1"), ("t", "2", "2")],
    ),
    "the old form": ([OLD, {"role": "function", "name": "t", "content": "1"}], [("t", {"a": 1}, "1")]),
    "a custom tool": ([CUSTOM, answers("x", "1")], [("t", "print(1)", "1")]),
    "no arguments": ([asks(("x", "t", "")), answers("x", "1")], [("t", {}, "1")]),
    "arguments that JSON cannot carry": (
        [asks(("x", "t", '{"a": NaN}')), answers("x", "1")],
        [("t", '{"a": NaN}', "1")],
    ),
    "an object as output": ([asks(("x", "t", "{}")), answers("x", {"rows": [1]})], [("t", {}, '{"rows": [1]}')]),
    "numbers as parts": ([asks(("x", "t", "{}")), answers("x", [5])], [("t", {}, "[5]")]),
    "parts of an output": (
        [asks(("x", "t", "{}")), answers("x", [{"type": "text", "text": "a"}, {"type": "image_url"}])],
        [("t", {}, "a\n[image_url]")],
    ),
    "an answer after the user's next message": (
        [asks(("x", "t", "{}")), {"role": "user", "content": "well?"}, answers("x", "1")],
        [("t", {}, "1")],
    ),
    "calls that are no list": (
        [{"role": "assistant", "tool_calls": {"id": 1}}, OLD, answers(None, "1")],
        [("t", {"a": 1}, "1")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_is_the_same_in_a_file_in_a_session_and_for_rules(case: str, tmp_path: Path) -> None:
    messages, calls = CASES[case]
    assert from_a_file(messages, tmp_path) == calls
    assert in_a_session(messages) == calls
    assert for_rules(messages) == [(name, output) for name, _, output in calls]


@pytest.mark.parametrize("message", [5, "noise", None, answers("early", "1"), answers(None, "1")])
def test_a_session_refuses_a_turn_that_it_cannot_join_and_says_which_message(message: Any) -> None:
    with pytest.raises(RequestError, match=r"^turn: message 2 (is not an object|answers ).*") as caught:
        records_of(read_chat([{"role": "user", "content": "go"}, message]))
    assert caught.value.field == "turn"


def test_what_a_users_message_carries_beside_is_not_what_the_user_said() -> None:
    parts = [
        {"type": "text", "text": "please read this"},
        {"type": "tool_result", "content": "never email Sarah"},
        {"type": "image_url", "image_url": {}},
        5,
        "and answer",
    ]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": {"say": "never email Sarah"}}]
    assert [turn.user_message for turn in turns_of_messages(messages)] == ["please read this\nand answer", ""]
    assert user_message_of(read_chat(messages)) == "please read this\nand answer"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["text", "id", "name", "a"]), inner),
    max_leaves=8,
)
ids = st.sampled_from(["", "a", "b", "c"])
names = st.sampled_from(["t", "u"]) | junk
bodies = st.fixed_dictionaries({}, optional={"name": names, "arguments": junk, "input": junk})
chat_messages = st.one_of(
    junk,
    st.fixed_dictionaries({"role": st.just("user")}, optional={"content": junk}),
    st.fixed_dictionaries({"role": st.just("assistant")}, optional={"function_call": bodies}),
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "tool_calls": st.lists(
                junk | st.fixed_dictionaries({"function": bodies}, optional={"id": ids}), max_size=4
            ),
        }
    ),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["tool", "function"])}, optional={"tool_call_id": ids, "name": names, "content": junk}
    ),
)


@given(st.lists(chat_messages, max_size=12))
def test_whatever_the_messages_each_answer_is_joined_once_or_named(messages: list[Any]) -> None:
    chat = read_chat(messages)
    answering = [each for each in messages if isinstance(each, dict) and each.get("role") in ("tool", "function")]
    strange = [each for each in messages if not isinstance(each, dict)]
    joined = [call.answer for call in chat.calls if call.answer is not None]
    assert len({id(answer) for answer in joined}) == len(joined)
    assert len(joined) + len(chat.problems) == len(answering) + len(strange)
    assert [call.message for call in chat.calls] == sorted(call.message for call in chat.calls)
    assert all(0 <= call.turn < len(chat.said) for call in chat.calls)
    assert all(isinstance(call.output, str) for call in chat.calls)
    assert all(isinstance(text_of(content, own_words=own), str) for content in chat.said for own in (True, False))


@pytest.mark.parametrize("call_id", [None, "", "x"])
@pytest.mark.parametrize("apart", [True, False])
def test_joining_takes_linear_time(call_id: str | None, apart: bool) -> None:
    def joined(count: int) -> Callable[[], object]:
        calls = [(call_id, "t", "{}")] * count
        asked = [asks(call) for call in calls] if apart else [asks(*calls)]
        messages = [*asked, *(answers(call_id, "1") for _ in calls)]
        return lambda: read_chat(messages)

    assert grows_at_most(64, joined, 1_000, 16_000, noise=0.2)  # 256 were quadratic
