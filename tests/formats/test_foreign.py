"""Recordings in the formats of others, written by their own programs, become calls."""

import gzip
import json
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest
from formats.conftest import NOW, PAYLOADS, read, write

from toolmem.errors import RequestError
from toolmem.formats.chat import is_random
from toolmem.formats.programs import BY_NAME
from toolmem.formats.recording import BadRecord, RecordingReader
from toolmem.formats.shapes import failure_of, moment
from toolmem.research.importing import import_recordings

BOOTS, BOOM = ("search", "boots"), ("search", "boom")
WEATHER = [("weather", city, worked) for city, worked in
           (("Paris", True), ("Nowhere", False), ("Nowhere", False), ("Slow", False),
            ("Oslo", True), ("Oslo", False))]  # fmt: skip
COMMANDS = ("echo one", "cat /nonexistent/file", "cat /nonexistent/file", "sys.exit(3)")

# Format: calls, each with its tool, a word of its arguments, and whether the source says it worked.
EXPECTED = {
    "claude_code.jsonl": [
        *(("Bash", each, each == "echo one") for each in COMMANDS),
        ("no_such_tool", "1", False),
        ("Read", "/nonexistent", False),
        ("Task", "look", True),
    ],
    "codex.jsonl": [
        *(("Bash", each, each == "echo one") for each in COMMANDS),
        ("no_such_tool", "1", None),
        ("update_plan", "completed", None),
    ],
    "codex_mcp.jsonl": [("look", "x", True), ("look", "boom", False)],
    "gemini_cli.jsonl": [
        *(("run_shell_command", each, None) for each in COMMANDS),
        ("no_such_tool", "1", False),
    ],
    "opencode.db": [("bash", "echo one", True)],
    "inspect_ai.json": [*WEATHER, ("wether", "Oslo", False)],
    "langchain.json": [(*BOOTS, True), (*BOOM, False)],
    "langchain_dumps.json": [(*BOOTS, True), (*BOOM, False)],
    "langchain_model_dump.jsonl": [(*BOOTS, True), (*BOOM, False)],
    "langfuse.json": [(*BOOTS, None), (*BOOM, False)],
    "langfuse_sdk.json": [(*BOOTS, None), (*BOOM, False)],
    "langsmith.jsonl": [(*BOOTS, True), (*BOOM, False)],
    "langsmith_batch.jsonl": [(*BOOTS, True), (*BOOM, False)],
    "otel.json": [(*BOOTS, None), (*BOOM, False)],
    "otel_messages.json": [(*BOOTS, None), (*BOOM, None)],
    "openinference.json": [("lookup", "Oslo", True), ("lookup", "Nowhere", False)],
    "openai_responses.jsonl": [(*BOOTS, None), (*BOOM, None), ("search", "socks", False)],
    "anthropic.jsonl": [(*BOOTS, None), (*BOOM, False)],
    "table.csv": [(*BOOTS, True), (*BOOM, False)],
}


@pytest.fixture(scope="module")
def payloads(tmp_path_factory):
    """A folder with the payloads; OpenCode's is a database."""
    folder = tmp_path_factory.mktemp("payloads")
    for path in PAYLOADS.iterdir():
        if path.suffix == ".sql":
            with sqlite3.connect(folder / "opencode.db") as database:
                database.executescript(path.read_text())
            database.close()
        else:
            shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_calls_of_a_payload_are_read(payloads, name):
    found = read(payloads / name)
    calls = [(each.tool_name, each.success) for each in found.calls]
    assert calls == [(tool, worked) for tool, _, worked in EXPECTED[name]]
    for call, (_, word, _) in zip(found.calls, EXPECTED[name], strict=True):
        assert word in json.dumps(call.input)
        assert call.output and call.conversation_id
    assert found.bad == []


def test_every_format_has_a_payload(payloads):
    used = {call.metadata["format"] for name in EXPECTED for call in read(payloads / name).calls}
    assert BY_NAME.keys() - used <= {"tau2"}  # written by hand below


@pytest.mark.parametrize("name", ["claude_code.jsonl", "codex.jsonl", "gemini_cli.jsonl"])
def test_transcripts_have_times_requests_and_durations(payloads, name):
    for call in read(payloads / name).calls:
        assert call.context == "Please look at the file that does not exist."
        assert call.create_time.year == 2026 and call.create_time.month == 11
        assert 0 <= call.time_cost < 1


def test_what_a_program_adds_to_outputs_is_left_out(payloads):
    worked, failed, *_ = read(payloads / "codex.jsonl").calls
    assert worked.output == "one\n"
    assert failed.output.startswith("Process exited with code 1\ncat: /nonexistent/file")
    gemini = read(payloads / "gemini_cli.jsonl").calls[1]
    missing = "cat: /nonexistent/file: No such file or directory"
    assert gemini.output == f"{missing}\nExit Code: 1"


def test_what_hooks_put_before_the_words_of_a_user_is_left_out(payloads, tmp_path):
    added = "<hook_context>What is known.</hook_context>\\n\\nPlease look at"
    text = (payloads / "gemini_cli.jsonl").read_text()
    (tmp_path / "session.jsonl").write_text(text.replace("Please look at", added))
    contexts = {call.context for call in read(tmp_path / "session.jsonl").calls}
    assert contexts == {"Please look at the file that does not exist."}


def test_the_error_of_a_server_is_the_text_that_it_answered(payloads):
    assert read(payloads / "openai_responses.jsonl").calls[-1].output == "no index socks"


def test_calls_that_the_user_refused_are_left_out_and_counted(payloads):
    assert "1 call that was not allowed to run was left out" in read(payloads / "opencode.db").notes


def test_a_damaged_line_is_named_and_the_others_are_read(payloads, tmp_path):
    lines = (payloads / "claude_code.jsonl").read_text().splitlines()
    damaged = tmp_path / "session.jsonl"
    damaged.write_text("\n".join([*lines[:9], lines[9][:100], *lines[9:-1], lines[-1][:50]]))
    found = read(damaged)
    assert len(found.calls) == 7
    assert [bad.line for bad in found.bad] == [10, len(lines) + 1]
    assert [bad.error.endswith("the file ends in this line") for bad in found.bad] == [False, True]


def test_a_session_that_goes_on_brings_only_its_new_calls(payloads, tmp_path, memory):
    lines = (payloads / "codex.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(lines[:12]))
    first = import_recordings(memory, [path]).calls
    path.write_text("".join(lines))
    second = import_recordings(memory, [path])
    third = import_recordings(memory, [path])
    again = import_recordings(memory, [path], again=True)
    assert 0 < first < 6
    assert (second.calls, second.duplicates) == (6 - first, first)
    assert third.notes == ["1 file was imported before and has not changed"]
    assert (again.calls, again.duplicates) == (0, 6)


@pytest.mark.parametrize("form", ["calls", "openai"])
def test_calls_without_ids_are_imported_once(tmp_path, memory, form):
    record = {"tool_name": "look", "input": {}, "output": "seen"}
    asked = {"role": "assistant", "tool_calls": [{"function": {"name": "look"}}]}
    conversation = {"messages": [asked, {"role": "tool", "content": "seen"}] * 2}
    path = write(tmp_path / "a.jsonl", *[record if form == "calls" else conversation] * 2)
    first = import_recordings(memory, [path])
    second = import_recordings(memory, [path], again=True)
    assert first.calls == second.duplicates == (2 if form == "calls" else 4)
    assert second.calls == 0


def test_a_forked_session_has_the_ids_of_the_calls_that_it_copied(payloads, tmp_path):
    text = (payloads / "claude_code.jsonl").read_text()
    session = json.loads(text.splitlines()[0])["sessionId"]
    fork = tmp_path / "fork.jsonl"
    fork.write_text(text.replace(session, "another"))
    copied = read(payloads / "claude_code.jsonl").calls
    assert [call.id for call in copied] == [call.id for call in read(fork).calls]


def test_the_same_id_in_another_conversation_is_another_call(tmp_path):
    def conversation(name):
        call = {"type": "tool_use", "id": "call_0", "name": "look", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": "call_0", "content": "seen"}
        messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
        return {"id": name, "messages": messages}

    found = read(write(tmp_path / "a.jsonl", conversation("a"), conversation("b")))
    assert len({call.id for call in found.calls}) == 2


def anthropic(number):
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {"a": number}}
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "seen"}
    return {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}


def openai(number):
    function = {"name": "look", "arguments": json.dumps({"a": number})}
    asked = {"role": "assistant", "tool_calls": [{"id": f"call_{number}", "function": function}]}
    return asked, {"role": "tool", "tool_call_id": f"call_{number}", "content": "seen"}


def responses(number, call_id="c"):
    call = {"type": "function_call", "name": "look", "arguments": json.dumps({"a": number})}
    answer = {"type": "function_call_output", "output": "seen"}
    return [{**each, "call_id": call_id} for each in (call, answer)]


def test_an_id_that_comes_again_with_other_arguments_or_in_another_session_is_another_call(
    tmp_path,
):
    requests = []
    for number in range(3):
        turns = [item for n in range(number + 1) for item in responses(n)]
        requests += [{"input": [{"role": "user", "content": who}, *turns]} for who in "ab"]
    calls = read(write(tmp_path / "a.jsonl", *requests)).calls
    assert [call.input["a"] for call in calls] == [0, 0, 1, 1, 2, 2]
    assert len({call.id for call in calls}) == 6
    assert len({call.conversation_id for call in calls}) == 2


def langchain(number):
    asked = {"id": f"c{number}", "name": "look", "args": {"a": number}}
    return {"type": "ai", "tool_calls": [asked]}, {
        "type": "tool", "tool_call_id": f"c{number}", "content": "seen"
    }  # fmt: skip


@pytest.mark.parametrize("turn", [anthropic, openai, langchain])
@pytest.mark.parametrize("cut", [0, 1])  # a line ends with answers, or with the calls
def test_a_log_of_requests_holds_each_call_once(tmp_path, turn, cut):
    messages = [{"role": "user", "type": "human", "content": "Look."}]
    requests = []
    for number in range(4):
        messages = [*messages, *turn(number)]
        requests.append({"id": f"request-{number}", "messages": messages[: len(messages) - cut]})
    found = read(write(tmp_path / "a.jsonl", *requests, {"messages": messages}))
    assert [call.input for call in found.calls] == [{"a": number} for number in range(4)]
    assert len({call.conversation_id for call in found.calls}) == 1
    assert {call.context for call in found.calls} == {"Look."}


def random_ids(messages):
    text = json.dumps(messages)
    for number in range(9):
        for short in (f'"toolu_{number}"', f'"call_{number}"', f'"c{number}"'):
            text = text.replace(short, f'"call_0{number}AbCdEfGh0123456789Xy"')
    return json.loads(text)


@pytest.mark.parametrize("turn", [anthropic, openai, langchain, responses])
@pytest.mark.parametrize("log", ["lines", "files", "grown"])
def test_ids_drawn_at_random_tell_repeated_calls_whatever_stands_before_them(
    tmp_path, memory, turn, log
):
    key = "input" if turn is responses else "messages"
    requests = []
    for number in range(1, 9):
        first = {"role": "user", "type": "human", "content": f"It is {number} o'clock."}
        calls = [item for n in range(max(0, number - 4), number) for item in turn(n)]
        calls = [{**e, "call_id": f"c{i // 2 + max(0, number - 4)}"} if turn is responses else e
                 for i, e in enumerate(calls)]  # fmt: skip
        requests.append({key: random_ids([first, *calls])})
    if log == "lines":
        assert len(read(write(tmp_path / "a.jsonl", *requests)).calls) == 8
    for number, request in enumerate(requests):
        lines = requests if log == "lines" else [request]
        name = f"{number}.jsonl" if log == "files" else "a.jsonl"
        import_recordings(memory, [write(tmp_path / name, *lines)])
    assert [each.calls_ever for each in memory.tools()] == [8]


@pytest.mark.parametrize("name", ["search_documents_1", "functions.search:0", "call-0000000000001"])
def test_ids_that_may_come_again_are_not_taken_for_random(name):
    assert not is_random(name)


def test_the_mark_of_a_cache_does_not_make_a_message_another(tmp_path):
    messages, requests = [], []
    for number in range(4):
        messages = [*messages, *anthropic(number)]
        marked = json.loads(json.dumps(messages))
        marked[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
        requests.append({"messages": marked})
    assert len(read(write(tmp_path / "a.jsonl", *requests)).calls) == 4


def test_calls_without_an_answer_are_counted(tmp_path):
    asked = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    found = read(write(tmp_path / "a.jsonl", {"output": [asked]}))
    assert found.calls == []
    assert "1 call without an answer was left out" in found.notes


def test_a_file_may_hold_two_formats(payloads, tmp_path):
    both = tmp_path / "both.jsonl"
    names = ("langsmith.jsonl", "claude_code.jsonl", "openai_responses.jsonl")
    both.write_text("".join((payloads / name).read_text() for name in names))
    assert len(read(both).calls) == 2 + 7 + 3


def test_tau2_results_are_read(tmp_path):
    call = {"id": "c", "name": "look", "arguments": {"a": 1}, "requestor": "assistant"}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "id": "c", "content": "no such a", "error": True},
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"info": {}, "simulations": [{"id": "s", "messages": messages}]}))
    (found,) = read(path).calls
    assert (found.success, found.context, found.input) == (False, "Look.", {"a": 1})


def test_a_tool_that_answered_nothing_has_an_empty_output(tmp_path):
    run = {"run_type": "tool", "id": "1", "name": "look", "outputs": {"output": ""}}
    (call,) = read(write(tmp_path / "a.jsonl", {**run, "inputs": {"a": 1}})).calls
    assert call.output == ""


@pytest.mark.parametrize("size", [10, 10_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_document_on_one_line_is_read_whatever_its_name(payloads, tmp_path, size, end):
    document = json.loads((payloads / "inspect_ai.json").read_text())
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"about": "x" * size, **document}) + end)
    assert len(read(path).calls) == 7


def test_an_unknown_format_is_described_and_can_be_mapped(tmp_path):
    row = {"fn": {"id": "look"}, "args": {"a": 1}, "result": {"text": "seen"}, "code": 0}
    path = write(tmp_path / "a.jsonl", *[row] * 8)
    found = read(path)
    assert found.calls == [] and len(found.bad) == 1
    assert "an object with 'fn', 'args', 'result', 'code'" in found.bad[0].error
    mapping = {"name": "fn/id", "arguments": "args", "output": "result/text", "error": "code"}
    calls = read(path, mapping=mapping).calls
    assert len(calls) == 8
    assert (calls[0].tool_name, calls[0].output, calls[0].success) == ("look", "seen", True)


@pytest.mark.parametrize(
    ("column", "value", "success"),
    [("success", "True", True), ("success", "false", False), ("exit_code", "0", True),
     ("exit_code", "2", False), ("is_error", "true", False), ("status", "completed", None),
     ("success", "", None), ("success", "ok", True), ("success", "failed", False),
     ("success", "unknown", None), ("status", "queued", None), ("status", "", None),
     ("exit_code", "0.0", True), ("error,exit_code", ",1", False), ("error,success", ",no", False),
     ("error", "", True), ("error", "no such city", False),
     ("tool_name,input,metadata,exit_code", "look,{},{},2", False)],
)  # fmt: skip
def test_a_column_of_a_table_tells_whether_a_call_worked(tmp_path, column, value, success):
    path = tmp_path / "calls.csv"
    path.write_text(f"tool,args,output,{column}\nlook,{{}},seen,{value}\n")
    (call,) = read(path).calls
    assert call.success is success


def test_usual_names_of_fields_are_suggested(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tool": "look", "args": {}, "result": "seen"})
    assert "try --map name=tool,arguments=args,output=result" in read(path).bad[0].error


def test_a_folder_is_searched_and_links_are_not_followed(payloads, tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    shutil.copy(payloads / "codex.jsonl", inside)
    (inside / "package.json").write_text('{"name": "x", "version": "1"}')
    (inside / "link.jsonl").symlink_to(payloads / "claude_code.jsonl")
    (inside / ".toolmem").mkdir()
    (inside / ".toolmem" / "memory.db").write_bytes(b"SQLite format 3\0 of toolmem itself")
    found = read(tmp_path)
    assert len(found.calls) == 6
    assert found.bad == []
    first, second = found.notes
    assert first == "1 file holds no answered call"
    assert "package.json: tool_name: missing" in second
    own = tmp_path / ".toolmem" / "exports"  # named, so that it is read
    own.mkdir(parents=True)
    shutil.copy(payloads / "codex.jsonl", own)
    assert len(read(own).calls) == 6


def test_calls_are_read_before_the_end_of_the_file(payloads, tmp_path):
    packed = gzip.compress((payloads / "claude_code.jsonl").read_bytes() * 50)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    reader = RecordingReader(NOW).read([path])
    assert not isinstance(next(reader), BadRecord)
    with pytest.raises(RequestError, match=r"cut\.jsonl\.gz"):
        list(reader)


def test_secrets_in_a_transcript_are_masked_when_they_are_kept(tmp_path, memory):
    token = "ghp_" + "a1B2" * 9
    asked = {"type": "function_call", "call_id": "c", "name": "look"}
    asked["arguments"] = f'{{"t": "{token}"}}'
    answer = {"type": "function_call_output", "call_id": "c", "output": f"token {token}"}
    path = write(tmp_path / "a.jsonl", {"input": [asked, answer]})
    import_recordings(memory, [path])
    kept = memory.calls()
    assert len(kept) == 1 and token not in str(kept)


def test_repeated_failures_are_counted_by_conversation(payloads, memory):
    found = import_recordings(memory, [payloads / "claude_code.jsonl"])
    assert (found.calls, found.failures, found.repeats) == (7, 5, 1)
    assert found.worst(1) == ["Bash"] and found.cards["Bash"]


@pytest.mark.parametrize(
    ("error", "failed"),
    [(None, False), (0, False), (1, True), ("", False), ("boom", True), ("completed", None),
     ("success", False), ({"message": "x"}, True), (False, False)],
)  # fmt: skip
def test_an_error_a_code_or_a_status_tells_whether_a_call_failed(error, failed):
    assert failure_of(error) is failed


@pytest.mark.parametrize(
    ("status", "failed"),
    [(None, None), (0, False), ("0.0", False), (3, True), ("running", None), ("Failed", True)],
)
def test_a_status_that_is_not_known_says_nothing(status, failed):
    assert failure_of(status=status) is failed


@pytest.mark.parametrize(
    "value",
    ["2026-11-28T13:31:24Z", 1795872684, 1795872684000, "1795872684000000000", 1795872684e6],
)
def test_times_are_read_in_every_unit(value):
    assert moment(value) == datetime(2026, 11, 28, 13, 31, 24, tzinfo=UTC)
    assert moment(datetime(2027, 1, 1)) == moment("2027-01-01") == NOW  # without a zone it is UTC


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "ls -a", "n": 1}'},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls", "-a"]}'},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-a"]}},
    ],
)
def test_every_shell_of_codex_is_the_bash_of_its_hooks(tmp_path, payload):
    answer = {"type": "function_call_output", "call_id": "c", "output": "."}
    lines = [
        {"timestamp": f"{NOW:%FT%TZ}", "type": "response_item", "payload": {"call_id": "c", **each}}
        for each in (payload, answer)
    ]
    (call,) = read(write(tmp_path / "rollout.jsonl", *lines)).calls
    assert (call.tool_name, call.input) == ("Bash", {"command": "ls -a"})
