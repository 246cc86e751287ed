"""Bad payloads, hostile folders, killed processes: exit code 0, nothing acknowledged is lost."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest
from hooks.conftest import decided

from toolmem.guard import stores
from toolmem.guard.guard import WRITE_WAIT
from toolmem.guard.rule_copies import copy_folder
from toolmem.hooks.__main__ import CHUNK, answer_event, read_payload
from toolmem.llm.tokens import estimated_tokens
from toolmem.models.calls import SystemClock
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.changes import Actor
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.turn import Turn
from toolmem.store.sqlite import SqliteStore, files
from toolmem.store.sqlite.database import Database

CALL = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}}


def payload(project, event="PreToolUse", **fields):
    told = {"hook_event_name": event, "session_id": "s1", "cwd": str(project), **CALL, **fields}
    return {"tool_use_id": "c1", **told}


def start(project, *options, cwd=None, preexec_fn=None, **environment):
    own = {name: os.environ[name] for name in ("HOME", "TMPDIR")}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, "-P", "-E", "-m", "toolmem.hooks", "claude-code", *options],
        **pipes,
        cwd=cwd or project,
        preexec_fn=preexec_fn,
        env={**own, "PATH": os.defpath, **environment},
    )


def run(project, event, *options, **more):
    process = start(project, *options, **more)
    out, err = process.communicate(json.dumps(event).encode(), timeout=60)
    assert (process.returncode, err) == (0, b"")
    return json.loads(out) if out else {}


BAD = {
    "nothing": b"",
    "cut": b'{"hook_event_name": "PreToolUse", "tool_name": "Ba',
    "twice": b'{"hook_event_name": "PreToolUse"}{"hook_event_name": "PreToolUse"}',
    "deep": b'{"hook_event_name": "PreToolUse", "tool_input": ' + b"[" * 100_000,
    "no object": b'["hook_event_name"]',
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", BAD)
def test_a_payload_that_cannot_be_read_stops_a_call_only_where_the_user_chose_that(name, project):
    open_ = answer_event(["claude-code"], BAD[name], {})
    closed = answer_event(["claude-code", "--on-error", "closed"], BAD[name], {})
    assert (b"Not sure" in open_) is (name == "deep")  # the call itself is to blame for that
    assert open_ == b"" or name == "deep"
    is_call = b"PreToolUse" in BAD[name]
    assert (b"could not be checked" in closed) is is_call


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace('"c1"', '"c1", "x": NaN, "y": 1e999, "z": -Infinity'),
        lambda text: text.replace('"c1"', '"c1", "x": "\\ud800"'),
        lambda text: text.replace("git push", "git \\ud800push \\ud83d"),
        lambda text: text.replace('"c1"', '"c1", "new_field": {"a": []}'),
        lambda text: text.replace('"tool_use_id": "c1"', '"tool_use_id": 7'),
    ],
    ids=["BOM", "NaN", "half an emoji", "half an emoji in the command", "unknown", "no text"],
)
def test_an_odd_payload_is_checked_and_recorded_all_the_same(change, host, project):
    host.prompt("Never push to main.")
    text = change(json.dumps(payload(project, command="x")))
    told = host.raw(text.encode("utf-8", "surrogatepass"))
    is_odd = "\\ud800push" in text
    assert is_odd or "Never push to main" in json.dumps(told)
    ended = json.loads(json.dumps(payload(project, "PostToolUse", tool_response="a\ud800")))
    host.raw(json.dumps({**ended, "tool_use_id": "c2"}).encode())
    assert [call.output for call in host.calls()] == ["a?"]


def test_an_unknown_event_an_unknown_agent_and_unknown_options_say_nothing(project):
    event = payload(project, "SomethingNew")
    assert run(project, event) == run(project, event, "--new-option", "--verbose") == {}
    data = json.dumps(event).encode()
    assert answer_event(["no-such-agent"], data, {}) == b""
    assert answer_event([], data, {}) == b""


def test_three_megabytes_are_read(host, project):
    big = payload(project, "PostToolUse", tool_response={"stdout": "x" * 3_000_000})
    assert run(project, big) == {}
    assert len(host.calls()) == 1


def test_a_store_that_is_damaged_is_told_and_stops_a_call_only_where_the_user_chose_that(project):
    (project / ".toolmem").mkdir()
    (project / ".toolmem" / "memory.db").write_bytes(b"no database" * 1_000)
    data = payload(project)
    assert run(project, data) == {}
    assert decided(run(project, data, "--on-error", "closed")) == "deny"
    assert "no rule binds" in run(project, payload(project, "SessionStart"))["systemMessage"]


def test_the_toolmem_command_answers_an_event_and_ends_with_0(project):
    command = [sys.executable, "-m", "toolmem", "hook", "claude-code"]
    data = json.dumps(payload(project)).encode()
    done = subprocess.run(command, input=data, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"")


def test_no_module_of_a_hostile_folder_is_imported(host, project):
    host.prompt("Never push to main.")
    mark = project / "imported"
    text = f"open({str(mark)!r}, 'a').write(__name__)\n"
    for name in ("json", "apsw", "msgspec", "re2", "sitecustomize", "usercustomize"):
        (project / f"{name}.py").write_text(text)
    (project / "toolmem").mkdir()
    (project / "toolmem" / "__init__.py").write_text(text)
    (project / ".env").write_text("TOOLMEM_GUARD=off\n")
    (project / "toolmem.yaml").write_text("guard: off\nop_modules: [json]\n")
    data = payload(project)
    for environment in ({}, {"PYTHONPATH": str(project)}):
        assert decided(run(project, data, **environment)) == "deny"
    run(project, payload(project, "SessionEnd"))
    time.sleep(1)  # the detached process has begun
    assert not mark.exists()


def test_a_link_in_place_of_the_store_is_not_followed_into_the_users_files(host, project, own_home):
    target = own_home / "precious"
    target.write_text("mine")
    (project / ".toolmem").mkdir()
    (project / ".toolmem" / "memory.db").symlink_to(target)
    run(project, payload(project))
    assert target.read_text() == "mine"


def test_nothing_acknowledged_is_lost_where_hooks_are_killed(host, project):
    """8 hooks at once, 40 % of them killed. One that waits in vain for the store says nothing."""
    dice = random.Random(7)
    answered_calls, answered_rules = set(), set()
    for batch in range(8):
        running = []
        for number in range(8):
            key = f"toolu_{batch}_{number}"
            if number % 4 == 3:
                sentence = f"Never run tool{batch}x{number}."
                event = payload(project, "UserPromptSubmit", prompt=sentence, prompt_id=key)
                mark = ("rule", sentence.rstrip("."))
            else:
                event = payload(project, "PostToolUse", tool_use_id=key, tool_response=key)
                mark = ("call", key)
            process = start(project)
            process.stdin.write(json.dumps(event).encode())
            process.stdin.close()
            running.append((process, mark))
        time.sleep(dice.uniform(0.1, 0.5))
        for process, _ in running:
            if dice.random() < 0.4:
                process.kill()
        for process, (kind, name) in running:
            out = process.stdout.read().decode()
            if process.wait(60) == 0 and (kind == "call" or out):
                assert kind == "call" or "Kept" in out or "not kept" in out
                if kind == "call" or "Kept" in out:
                    (answered_calls if kind == "call" else answered_rules).add(name)
    assert answered_calls <= {call.id for call in host.calls()}
    assert answered_rules <= {rule.rule for rule in host.rules()}
    assert len(answered_calls) > 10 and len(answered_rules) > 3


def test_the_second_of_two_installs_acts_where_the_first_was_killed(host, project):
    host.prompt("Never push to main.")
    data = json.dumps(payload(project)).encode()
    first = start(project)
    first.stdin.write(data[:-1])
    first.stdin.flush()
    first.kill()
    first.wait()
    assert decided(run(project, payload(project))) == "deny"


def test_a_session_is_judged_and_summarized_after_its_end(host, project):
    for number in range(3):
        host.before(f"ls {number}", key=f"toolu_{number}")
        host.after(f"ls {number}", "a.txt", key=f"toolu_{number}")
    began = time.monotonic()
    run(project, payload(project, "SessionEnd"))
    assert time.monotonic() - began < 20
    for _ in range(300):
        time.sleep(0.1)
        if all(call.is_summarized for call in host.calls()):
            break
    assert [call.evaluation_status for call in host.calls()] == ["ok"] * 3
    told = json.dumps(host.send("SessionStart", "s2", source="startup"))
    assert "### `Bash`" in told


def test_a_sessions_start_stays_within_its_tokens(host):
    for number in range(40):
        key = f"toolu_{number}"
        host.before(f"ls {number}", key=key)
        host.after(f"ls {number}", f"file {number}", key=key)
    host.prompt("Never push to main.")
    told = host.send("SessionStart", source="startup")["hookSpecificOutput"]
    assert estimated_tokens(told["additionalContext"]) <= 1_500


def no_file_may_grow():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_ban_holds_where_nothing_can_be_written(host, project):
    host.prompt("Never push to main.")
    run(project, payload(project, "SessionStart"))
    assert decided(run(project, payload(project), preexec_fn=no_file_may_grow)) == "deny"


def test_a_ban_holds_at_once_under_the_lock_of_another_process(host, monkeypatch):
    waits = []
    patience = Database._lock_timeout

    def noted(self, db, wait):
        waits.append(wait)
        return patience(self, db, wait)

    host.prompt("Never push to main.")
    with host.locked():
        monkeypatch.setattr(Database, "_lock_timeout", noted)
        told = host.send("PreToolUse", **host._call("git push origin main", "c1"))
    assert decided(told) == "deny" and "nothing can be kept" in told["systemMessage"]
    assert waits and max(waits) <= WRITE_WAIT


def test_a_store_that_stays_locked_against_readers_is_waited_for_once(host, monkeypatch):
    waits = []
    open_file = files.open_file

    def noted(path, busy_timeout):
        waits.extend([busy_timeout] if path == location else [])
        return open_file(path, busy_timeout)

    host.prompt("Never push to main.")
    location = host.store().location
    monkeypatch.setattr(stores, "DECISION_WAIT", 0.2)
    with closing(apsw.Connection(location)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(files, "open_file", noted)
        decision = host.decision("git push origin main")
    assert decision == "deny"
    assert [wait for wait in waits if wait] == [0.2]


def test_a_demand_that_cannot_be_kept_is_told_so(host, project):
    host.prompt("Never push to main.")
    event = payload(project, "UserPromptSubmit", prompt="Never use sudo.", prompt_id="p9")
    told = run(project, event, preexec_fn=no_file_may_grow)
    assert "not kept" in told["systemMessage"] and "Never use sudo" in told["systemMessage"]
    assert [rule.rule for rule in host.rules()] == ["Never push to main"]


def test_a_pipe_that_stays_open_is_no_reason_to_wait(host, project):
    host.prompt("Never push to main.")
    process = start(project)
    process.stdin.write(json.dumps(payload(project)).encode())
    process.stdin.flush()
    hanging = threading.Timer(30, process.kill)
    hanging.start()
    out = process.stdout.read()
    hanging.cancel()
    assert decided(json.loads(out)) == "deny" and process.wait(10) == 0


def lost(project, how):
    """What happens to the store of a project."""
    database = project / ".toolmem" / "memory.db"
    if how == "deleted":
        shutil.rmtree(project / ".toolmem")
    elif how == "emptied":
        for end in ("", "-wal", "-shm"):
            database.with_name(database.name + end).unlink(missing_ok=True)
    elif how == "damaged":
        database.write_bytes(b"no store" * 1_000)
    elif how == "a link":
        database.rename(project / "moved.db")
        database.symlink_to(project / "moved.db")
    elif how == "a link of its folder":
        (project / ".toolmem").rename(project / "moved")
        (project / ".toolmem").symlink_to(project / "moved")
    elif how == "the state folder":
        shutil.rmtree(Path(os.environ["HOME"], ".local"))
    else:
        shutil.copytree(project / "before", project / ".toolmem", dirs_exist_ok=True)


LINKS = ("a link", "a link of its folder")
HOWS = ("deleted", "emptied", "damaged", *LINKS, "the state folder", "put back")


@pytest.mark.parametrize("how", HOWS)
def test_a_ban_survives_the_loss_of_its_store_and_the_user_is_told(how, project):
    def say(text, key):
        event = payload(project, "UserPromptSubmit", prompt=text, prompt_id=key)
        return run(project, event)

    call = payload(project)
    say("Never use sudo.", "p1")
    shutil.copytree(project / ".toolmem", project / "before")
    say("Never push to main.", "p2")
    assert decided(run(project, call)) == "deny"
    lost(project, how)
    told = run(project, payload(project, tool_use_id="c2"))
    assert decided(told) == "deny"
    reason = told["hookSpecificOutput"]["permissionDecisionReason"]
    assert "tell the user" in reason
    harmless = payload(project, tool_use_id="c4", tool_input={"command": "ls"})
    assert "could not be read" not in json.dumps(run(project, harmless))
    if how == "damaged":
        assert "move it away" in reason
    if how != "the state folder":  # the rule binds from its copy, which no reply changes
        assert "yes, this once" not in reason and "`lift" not in reason
    notice = say("Never use git rebase.", "p3")["systemMessage"]
    assert "rules of" in notice if how == "the state folder" else "store restore" in notice
    assert ("not kept" if how in ("damaged", *LINKS) else "Kept") in notice
    if how in ("deleted", "emptied", "put back"):
        restore(project)
        told = say("go on", "p4")
        assert "store restore" not in told.get("systemMessage", "")
        told = run(project, payload(project, tool_use_id="c3"))
        assert decided(told) == "deny" and "tell the user" not in json.dumps(told)


class Pipe(io.BytesIO):
    """Gives the parts of a payload, and then blocks."""

    def __init__(self, parts):
        super().__init__()
        self.parts = iter(parts)

    def read1(self, size=-1):
        part = next(self.parts, None)
        assert part is not None, "the pipe is open, and nothing more comes"
        return part


TEXTS = {"whole": "x" * (CHUNK - 9), "no UTF-8": "é", "signs": "}" * CHUNK}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_payload_is_complete_with_its_json_whatever_its_size(text):
    raw = json.dumps({"a": text}, ensure_ascii=False).encode("latin-1")
    parts = [raw[at : at + CHUNK] for at in range(0, len(raw), CHUNK)]
    received = bytearray()
    read_payload(Pipe(parts), received)
    assert received == raw


def test_parts_that_end_like_a_payload_are_not_all_parsed(monkeypatch):
    parsed = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(len(text)) or loads(text))
    raw = b'{"a": "' + b"}" * 500_000 + b'"}'
    parts = [raw[at : at + 1_000] for at in range(0, len(raw), 1_000)]
    received = bytearray()
    read_payload(Pipe([*parts, b""]), received)
    assert received == raw
    assert sum(parsed) < 6 * len(raw)


def copied(project):
    folder = copy_folder(project / ".toolmem" / "memory.db")
    return "".join(file.read_text(encoding="utf-8") for file in folder.iterdir())


def restore(project, *options):
    command = [sys.executable, "-P", "-m", "toolmem", "store", "restore", *options]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout


def test_rules_are_shown_where_the_store_is_damaged_and_its_copy_binds(host, project):
    host.prompt("Never push to main.")
    lost(project, "damaged")
    told = host.send("SessionStart", source="startup")
    assert "Never push to main" in told["hookSpecificOutput"]["additionalContext"]
    assert "its copy of 1 rule binds" in told["systemMessage"]
    assert "no rule binds" not in told["systemMessage"]


def test_a_store_that_was_put_back_is_whole_once_its_rules_are_restored(host, project):
    host.prompt("Never push to main.")
    host.prompt("Never use sudo.")
    shutil.copytree(project / ".toolmem", project / "before")
    sudo = next(rule for rule in host.rules() if "sudo" in rule.rule)
    assert "Lifted" in host.prompt(f"lift {sudo.id}")["systemMessage"]
    lost(project, "put back")
    assert "put back to a state before" in host.prompt("go on")["systemMessage"]
    assert restore(project).startswith("nothing was lost")
    assert "put back" not in host.prompt("go on").get("systemMessage", "")


def test_a_rule_that_was_changed_since_is_restored_in_its_newest_version(host, project):
    host.prompt("Never push to main.")
    shutil.copytree(project / ".toolmem", project / "before")
    (rule,) = host.rules()
    with host.rule_store() as rules:
        rules.change(rule, Actor("user", "typed"), "changed", priority="normal")
    host.prompt("go on")
    lost(project, "put back")
    host.prompt("go on")
    assert restore(project).startswith("1 of 1 rule written")
    assert [each.priority for each in host.rules()] == ["normal"]


def test_the_message_of_a_loss_names_the_store_that_lost_its_rules(host, project, own_home):
    path = own_home / ".toolmem" / "memory.db"
    with SqliteStore(path) as store:
        rules = ToolMemoryStore(store, "default", SystemClock())
        ToolMemoryCaptureHook(rules, actor=Actor("user", "typed")).after_turn(
            Turn(user_message="Never use sudo.", conversation_id="s", number=1, tools=("Bash",))
        )
    host.prompt("Never push to main.")
    path.unlink()
    assert f"toolmem store restore --store {path};" in host.prompt("go on")["systemMessage"]
    assert host.before("sudo ls")
    host.prompt("Never use git rebase.")
    assert "rebase" in copied(project)  # the copies of other stores are updated meanwhile
    restore(project, "--store", str(path))
    assert "store restore" not in host.prompt("go on").get("systemMessage", "")


def test_a_users_store_without_rules_that_cannot_be_read_takes_no_ban_away(host, own_home):
    path = own_home / ".toolmem" / "memory.db"
    with SqliteStore(path) as store:
        store.put("default", "x", "y", 1)
    host.prompt("Never push to main.")
    path.write_bytes(b"no store" * 1_000)
    assert host.before("git push origin main")


def test_a_folder_for_temporary_files_that_cannot_be_looked_into_takes_no_ban_away(
    host, tmp_path, monkeypatch
):
    host.prompt("Never push to main.")
    monkeypatch.setenv("TMPDIR", str(tmp_path / ("long" * 100)))
    assert "Never push" in host.before("git push origin main")
    assert "Kept" in host.prompt("Never use sudo.")["systemMessage"]


def test_a_damaged_record_of_a_session_takes_no_ban_away(host):
    host.prompt("Never push to main.")
    host.store().put("default", ".hooks", "session/s1", {"turn": "many"})
    assert "Never push" in host.before("git push origin main")


def test_the_copy_binds_where_the_folder_of_a_store_cannot_be_looked_into(host, project):
    host.prompt("Never push to main.")
    (project / ".toolmem").rename(project / "away")
    (project / ".toolmem").symlink_to(project / ".toolmem")
    assert "Never push" in host.before("git push origin main")
    assert "its copy of" in host.prompt("go on")["systemMessage"]


@pytest.mark.parametrize("how", ["damaged", "old", "loop"])
def test_a_users_store_that_was_never_read_takes_no_ban_away(how, host, own_home):
    host.prompt("Never push to main.")
    path = own_home / ".toolmem" / "memory.db"
    if how == "damaged":
        path.write_bytes(b"no store" * 1_000)
    elif how == "old":
        with closing(apsw.Connection(str(path))) as db:
            db.execute(f"CREATE TABLE x (a); PRAGMA application_id = {files.APPLICATION_ID}")
            db.execute("PRAGMA user_version = 1")
    else:
        shutil.rmtree(path.parent)
        path.parent.symlink_to(path.parent)
    assert "Never push" in host.before("git push origin main")
    assert f"the rules of {path} do not bind" in host.prompt("go on")["systemMessage"]
    told = host.send("SessionStart", session="s2", source="startup")
    assert "do not bind" in told["systemMessage"]
    assert "Never push" in told["hookSpecificOutput"]["additionalContext"]
    data = json.dumps(payload(host.project)).encode()
    assert b"deny" in answer_event(["claude-code", "--on-error", "closed"], data, {})


def test_a_demand_is_kept_while_the_users_own_store_is_locked(host, own_home):
    path = own_home / ".toolmem" / "memory.db"
    with SqliteStore(path) as store:
        store.put("default", "x", "y", 1)
    host.prompt("go on")
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        told = host.prompt("Never push to main.")["systemMessage"]
    assert "Kept" in told and "not kept" not in told
    assert f"the rules of {path} did not follow this message" in told


def test_a_reply_that_cannot_be_stored_is_told_so(host):
    host.prompt("Never push to main.")
    host.before("git push origin main")
    with host.locked():
        told = host.prompt("yes, this once")["systemMessage"]
    assert "no reply in it was followed" in told


def test_a_copy_that_cannot_be_read_counts_as_none(host, project):
    host.prompt("Never push to main.")
    for file in copy_folder(project / ".toolmem" / "memory.db").iterdir():
        file.write_bytes(b'{"rules": [1]}')
    assert host.before("git push origin main")
    assert "Never" in copied(project)


def test_a_demand_that_is_held_outlasts_a_prompt_whose_commit_fails(host, monkeypatch):
    host.prompt("Never push to main.")
    with host.locked():
        host.prompt("Never use sudo.")

    def fails(db, begin="BEGIN"):
        return contextmanager(lambda: full_at_commit(db, begin))()

    with monkeypatch.context() as patch:
        patch.setattr("toolmem.store.sqlite.database.transaction", fails)
        assert "not kept" in host.prompt("go on")["systemMessage"]
        assert "Never use sudo" in host.before("sudo ls")
    assert "Kept now" in host.prompt("go on")["systemMessage"]
    assert "Never use sudo" in host.before("sudo ls", session="s2")


def full_at_commit(db, begin):
    """A transaction on a full disk: what is written waits in memory, and the commit fails."""
    with files.transaction(db, begin):
        yield
        if begin == "BEGIN IMMEDIATE" and db.db_filename("main"):
            raise apsw.FullError("database or disk is full")
