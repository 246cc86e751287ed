"""OpenAI conversations become calls, and pictures stay out of them."""

import base64
import json
import os
from datetime import UTC, datetime

import pytest

from toolmem.errors import RequestError
from toolmem.formats.chat import read_chat
from toolmem.formats.recording import read_labels, read_recording

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asks(*calls, key="id"):
    return {
        "role": "assistant",
        "tool_calls": [
            {**({key: call_id} if call_id else {}), "function": {"name": n, "arguments": a}}
            for call_id, n, a in calls
        ],
    }


def answers(content, call_id=None, **more):
    of = {"tool_call_id": call_id} if call_id else {}
    return {"role": "tool", "content": content, **of, **more}


@pytest.fixture
def read(tmp_path):
    def reading(*conversations, suffix="jsonl", **options):
        path = tmp_path / f"chats.{suffix}"
        text = "\n".join(map(json.dumps, conversations))
        path.write_text(text if suffix == "jsonl" else json.dumps(conversations))
        return read_recording([path], NOW, **options)

    return reading


def outputs(recording):
    return [(call.tool_name, call.output) for call in recording.calls]


def test_calls_are_joined_with_their_answers_and_the_users_words(read):
    messages = [
        {"role": "user", "content": "Mail Ann, please."},
        asks(("c1", "send", '{"to": "ann"}'), ("c2", "look", "not json"), ("c3", "nap", "")),
        answers("no such user", "c2"),
        answers([{"type": "text", "text": "sent"}, {"type": "image_url"}], "c1"),
    ]
    found = read({"id": "day1", "messages": messages, "tools": [{"function": {"name": "send"}}]})
    send, look = found.calls
    assert (send.input, send.output) == ({"to": "ann"}, "sent\n[image_url]")
    assert (look.input, look.context) == ("not json", "Mail Ann, please.")
    assert send.conversation_id == look.conversation_id == "day1"
    assert send.success is None
    assert found.notes == ["1 call without an answer was left out"]
    assert found.tools == [{"function": {"name": "send"}}]


def test_an_id_that_is_used_again_is_joined_by_turn_and_ids_stay_distinct(read):
    asked = asks(("call_0", "a", "{}"))
    messages = [asked, answers("first", "call_0"), asked, answers("second", "call_0")]
    found = read({"id": "x", "messages": messages}, {"id": "x", "messages": messages})
    assert [call.output for call in found.calls] == ["first", "second"] * 2
    assert len({call.id for call in found.calls}) == 4
    assert len({call.conversation_id for call in found.calls}) == 2


def test_a_name_decides_before_the_order_and_order_alone_is_noted(read):
    both = asks((None, "a", "{}"), (None, "b", "{}"))
    named = [both, answers("of b", tool_name="b"), answers("of a", name="a")]
    assert sorted(outputs(read(named))) == [("a", "of a"), ("b", "of b")]
    assert read(named).notes == []
    plain = read([both, answers("first"), answers("second")])
    assert outputs(plain) == [("a", "first"), ("b", "second")]
    assert plain.notes == ["1 answer without an id was assigned by order alone"]
    same = [asks(("c", "a", "{}"), ("c", "b", "{}")), answers("x", "c", name="b")]
    assert outputs(read(same)) == [("b", "x")]


def test_a_message_that_is_wrong_takes_no_other_with_it(read):
    found = read(
        ["nonsense"],
        {"messages": [answers("lost", "c9"), asks(("c1", "a", "{}")), answers("x", "c1"), 7]},
        format="openai",
    )
    assert outputs(found) == [("a", "x")]
    told = [bad.error for bad in found.bad]
    assert told == [
        "no conversation: expected an object with a list `messages`",
        "message 1 answers 'c9': no such call",
        "message 4 is no object",
    ]


@pytest.mark.parametrize(
    "tools", [5, {"a": 1}, ["x"], [{"function": "s"}], [{"name": "f", "parameters": [1]}]]
)
def test_declarations_that_cannot_be_read_cost_no_call(read, tools):
    talk = {"tools": tools, "messages": [asks(("c1", "a", "{}")), answers("x", "c1")]}
    found = read(talk)
    assert (outputs(found), found.tools) == ([("a", "x")], [])
    told = ["1 declaration of tools could not be read"] if isinstance(tools, list) else []
    assert found.notes == told


def test_a_json_file_may_hold_many_conversations_and_formats_may_be_mixed(read, tmp_path):
    talk = {"messages": [asks(("c1", "a", "{}")), answers("x", "c1")]}
    assert outputs(read(talk, talk, suffix="json")) == [("a", "x")] * 2
    assert outputs(read(talk, {"tool_name": "b", "output": "y"})) == [("a", "x"), ("b", "y")]
    assert len(read(talk, talk, talk, limit=2).calls) == 2


def test_a_picture_is_named_by_its_kind_and_size(read):
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\r" + os.urandom(30_000)).decode()
    (call,) = read(
        {
            "tool_name": "shot",
            "input": {"as": {"url": f"data:image/jpeg;base64,{data}"}, "n": "7" * 2000},
            "output": json.dumps({"type": "image", "data": data}),
        }
    ).calls
    assert call.output == '{"type": "image", "data": "[image/png, 30 kB]"}'
    assert call.input["as"] == {"url": "[image/jpeg, 30 kB]"}
    assert call.input["n"] == "7" * 2000


def test_labels_are_read_by_row_and_a_bad_one_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("index,tool_name,label\n0,a,1\n2,b,0\n3,c,\n")
    assert read_labels(path) == {0: True, 2: False}
    path.write_text("row,label\n0,true\n1,\n2,false\n")  # as calls.csv has them
    assert read_labels(path) == {0: True, 2: False}
    for text, told in (
        ("index,label\n0,yes\n", "line 2: expected `label` 1 or 0"),
        ("Index;label\n0;1\n", "line 1: expected the columns `index`"),
        ("index,label\n0,1\n0,0\n", "line 3: row 0 has another label above"),
        ("", "line 1: expected the columns"),
    ):
        path.write_text(text)
        with pytest.raises(RequestError, match=told):
            read_labels(path)


def test_langchain_calls_are_read_with_their_arguments():
    made = {"type": "ai", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "1"}]}
    chat = read_chat([made, {"type": "tool", "tool_call_id": "1", "content": "ok"}])
    (call,) = chat.calls
    assert (call.name, call.arguments, call.output) == ("f", {"a": 1}, "ok")
    assert chat.problems == []


def test_a_call_whose_arguments_cannot_be_found_is_a_problem():
    made = {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "params": {"a": 1}}]}
    chat = read_chat([made])
    assert chat.calls == []
    assert chat.problems == ["message 1: no `arguments` in the call of 'f', but 'params'"]
    bare = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    assert [call.arguments for call in read_chat([bare]).calls] == [None]


def test_calls_in_the_form_of_another_provider_are_named():
    used = {"role": "assistant", "content": [{"type": "tool_use", "name": "g", "input": {}}]}
    item = {"type": "function_call", "name": "g", "arguments": "{}"}
    assert read_chat([used, item]).problems == [
        "message 1: tool_use is Anthropic's form, which is not read here",
        "message 2: function_call is the Responses API's form, which is not read here",
    ]
