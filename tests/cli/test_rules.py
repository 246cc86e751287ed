"""`toolmem rules`, `guard` and `note` as a user runs them: processes of their own."""

import json
import os
import subprocess
from functools import partial
from select import select

import command_line
import pytest
from command_line import COMMAND

from toolmem import ToolMem
from toolmem.models.rules import Said
from toolmem.operations.rules import schemas_of
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.changes import Actor
from toolmem.rules.store import GUARDED
from toolmem.rules.turn import Turn

STORE = ("--store", "m.db")


@pytest.fixture
def run(tmp_path):
    return partial(command_line.run, tmp_path)


@pytest.fixture
def add(run):
    def command(text="Never push to main", *options):
        when = '[{"command": "^git push", "word": "(.*:)?main"}]'
        checked = ("--effect", "deny", "--when", when)
        done = run("rules", "add", "@shell", text, *checked, *options, *STORE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return command


def test_a_rule_is_added_listed_shown_checked_and_deleted(run, add):
    made = add()
    assert "Never push to main" in run("rules", "list", *STORE).stdout
    [listed] = json.loads(run("rules", "list", "@shell", "--json", *STORE).stdout)
    assert listed["id"] == made
    assert '"word": "(.*:)?main"' in run("rules", "show", made[:6], *STORE).stdout
    assert "**[critical]** Never push to main" in run("rules", "prompt", *STORE).stdout
    stopped = run("guard", "check", "Bash", "git push origin main", *STORE)
    assert (stopped.returncode, stopped.stdout[:21]) == (5, "deny: toolmem: not ru")
    assert run("guard", "check", "Bash", "git push origin dev", *STORE).stdout == "allow\n"
    logged = run("guard", "log", *STORE).stdout
    assert "rule" in logged and "git push origin main" in logged and "origin dev" not in logged
    [counted] = json.loads(run("rules", "list", "--json", *STORE).stdout)
    assert counted["stopped"] == 1 and counted["last_stopped"] > listed["created_at"]
    assert run("rules", "delete", made[:8], *STORE).returncode == 0
    assert run("guard", "check", "Bash", "git push origin main", *STORE).returncode == 0


def test_a_rule_without_conditions_is_read_as_a_sentence_and_what_it_does_is_told(run):
    added = run("rules", "add", "send_email", "never email sarah@example.com", *STORE)
    assert "stops such calls of `send_email`" in added.stderr
    given = {"to": "sarah@example.com"}
    assert run("guard", "check", "send_email", "-", *STORE, given=given).returncode == 5
    vague = run("rules", "add", "send_email", "Never email Bob on weekends", *STORE)
    assert "a reminder: no call is checked" in vague.stderr


def test_a_rule_is_withdrawn_listed_as_ended_and_restored(run, add):
    made = add()
    assert "Never push" in run("rules", "withdraw", made[:6], *STORE).stdout
    assert run("guard", "check", "Bash", "git push origin main", *STORE).returncode == 0
    assert "no rule fits" in run("rules", "list", *STORE).stderr
    assert made[:8] in run("rules", "list", "--state", "ended", "--text", "PUSH", *STORE).stdout
    assert "holds again: Never push" in run("rules", "restore", made[:6], *STORE).stdout
    assert run("guard", "check", "Bash", "git push origin main", *STORE).returncode == 5


def test_a_rule_is_tried_by_its_id_or_as_a_sentence(run, add, tmp_path):
    made = add()
    with ToolMem(str(tmp_path / "m.db")) as memory:
        given = {"tool_name": "Bash", "output": "ok", "success": True}
        memory.add([{**given, "input": {"command": f"git push origin {n}"}} for n in ("main", "b")])
    tried = run("rules", "try", made[:6], *STORE).stdout
    assert "2 tried, 1 stopped, 1 of these had worked" in tried
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.tool_rule_put("@shell", "Never push to main", effect="ask", id=made)
    assert "1 asked about, 1 of these" in run("rules", "try", made[:6], *STORE).stdout
    sentence = ("send_email", "Never email bob@example.com")
    mail = '{"to": "bob@example.com"}'
    assert "call: yes" in run("rules", "try", *sentence, "--call", mail, *STORE).stdout
    pushed = run("rules", "try", made, "--call", "git push origin dev", "--json", *STORE)
    assert json.loads(pushed.stdout)["match"] == "no"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rules", "list"), "there is no file"),
        (("rules", "show", "abc", *STORE), "no rule begins so"),
        (("rules", "add", "t", "x", "--effect", "deny", *STORE), "deny; or leave both out"),
        (("rules", "add", "t", "x", "--when", "{", *STORE), "--when: no JSON"),
        (("rules", "add", " ", "x", *STORE), "tool_name is required"),
        (("guard", "check", "t", "{x", *STORE), "no JSON"),
        (("guard", "replay", "--input", "no.jsonl"), "no.jsonl"),
        (("rules", "capture", *STORE), "--turns"),
        (("rules", "try", "a", "b", "c", *STORE), "a tool and a sentence in quotes"),
    ],
)
def test_what_cannot_be_done_is_refused_with_exit_code_2(run, add, arguments, told):
    if {"show", "check", "try"} & set(arguments):
        add()
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr


def guard_by_user(path, rule_id):
    """The user said the rule, and a hook is at work in the store."""
    with ToolMem(path) as memory:
        rule = memory.rules.get_rule("@shell", rule_id)
        memory.rules.change(rule, Actor("user", "typed"), said=Said("user"))
        memory.rules.store.put(*GUARDED, {})


def test_in_a_guarded_store_a_command_without_a_terminal_only_asks(run, add, tmp_path):
    made = add()
    guard_by_user(tmp_path / "m.db", made)
    done = run("rules", "delete", made, *STORE)
    assert (done.returncode, "waits" in done.stderr) == (1, True)
    assert "Never push" in run("rules", "review", *STORE).stdout
    assert run("rules", "approve", made[:6], *STORE).returncode == 1
    for text in ("Never push to main", "Never rm"):
        done = run("rules", "add", "@shell", text, "--effect", "remind", *STORE)
        assert done.returncode == 1 and f" rules approve {done.stdout[:8]}\n" in done.stderr
        assert run("rules", "reject", done.stdout.strip(), *STORE).returncode == 0
    assert "nothing waits" in run("rules", "review", *STORE).stderr
    assert "Never push" in run("rules", "list", *STORE).stdout


def test_review_shows_all_of_a_request_with_what_is_invisible_in_it(run, add, tmp_path):
    made = add()
    guard_by_user(tmp_path / "m.db", made)
    when = [{"command": "x" * 490 + "\u202e"}, {"command": "y" * 490}]
    with ToolMem(str(tmp_path / "m.db")) as memory:
        agent = memory.acting_as(Actor("agent"))
        agent.tool_rule_put("@shell", "Never push to main", effect="ask", when=when, id=made)
        new = {"effect": "deny", "when": [{"target": "bob"}]}
        agent.tool_rule_put("send_email", "Never email Bob", **new)
    shown = run("rules", "review", *STORE).stdout
    assert 'effect: "deny" -> "ask"' in shown
    assert '-> [{"command": "' + "x" * 490 + '<U+202E>"}, {"command": "yyy' in shown
    assert "a new rule, by agent" in shown and 'when: [{"target": "bob"}]' in shown
    run("rules", "delete", made, *STORE)
    assert "    delete it\n" in run("rules", "review", *STORE).stdout


def test_turns_are_shown_and_kept_only_where_that_is_asked(run, tmp_path):
    turn = {
        "user_message": "Never email Bob. Don't email Sarah yet.",
        "tool_calls": [{"name": "send_email"}],
        "tools": ["send_email"],
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(turn) + "\n")
    row = json.loads(run("rules", "capture", "--turns", "t.jsonl", "--json", *STORE).stdout)
    assert (row["turn"], row["too_long"]) == (0, 0)
    [rule] = row["rules"]
    assert (rule["tool_name"], rule["priority"]) == ("send_email", "critical")
    assert [each["rule"] for each in row["session"]] == ["Don't email Sarah yet"]
    assert not (tmp_path / "m.db").exists()
    kept = run("rules", "capture", "--turns", "t.jsonl", "--apply", *STORE).stdout
    assert "not kept, as it holds for a session that is not named: Don't" in kept
    assert "Never email Bob" in run("rules", "list", *STORE).stdout


def test_conversations_are_captured_as_turns(run, tmp_path):
    asked = {"id": "1", "type": "function", "function": {"name": "send_email", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Never email Bob"},
        {"role": "assistant", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "1", "content": "Never email Alice"},
    ]
    (tmp_path / "c.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    done = run("rules", "capture", "--conversations", "c.jsonl", "--json", *STORE)
    assert [each["rule"] for each in json.loads(done.stdout)["rules"]] == ["Never email Bob"]


def test_a_note_is_kept_refused_or_waits(run):
    said = "please never touch prod"
    note = {"quote": "never touch prod", "effect": "remind", "tools": ["@shell"]}

    def noted(*options, **fields):
        done = run("note", *options, *STORE, given={**note, **fields})
        return done.returncode, json.loads(done.stdout)["outcome"] if done.stdout else done.stderr

    heard = ("--said", said, "--conversation", "c1")
    assert noted(*heard) == noted() == (0, "kept")  # again, by a model: it asks for nothing new
    assert noted(quote="stop all of it now") == (1, "request")
    assert noted(*heard, quote="never say never") == (2, "refused")
    code, told = noted(*heard, colour="red")
    assert code == 2 and "colour" in told
    assert noted("--lift", *heard)[0] == 2


def test_a_recording_is_replayed(run, tmp_path):
    call = {"tool_name": "Bash", "input": {"command": "cat x"}, "conversation_id": "c"}
    failed = {**call, "output": "cat: x: No such file or directory", "success": False}
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps(failed) for _ in range(3)))
    done = json.loads(run("guard", "replay", "--input", "r.jsonl", "--json").stdout)
    assert (done["calls"], done["failures"]) == (3, 3)
    assert done["sources"]["repeat"]["flagged"] == 2
    assert [flag["index"] for flag in done["flags"]] == [1, 2]
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.add([failed, failed])
    for option in ("--rules", "--store"):
        logged = run("guard", "replay", option, "m.db", "--json")
        assert json.loads(logged.stdout)["sources"]["repeat"]["flagged"] == 1


def test_a_recording_is_replayed_against_the_rules_of_a_store(run, add, tmp_path):
    add()
    pushed = {"tool_name": "Bash", "input": {"command": "git push origin main"}, "output": "ok"}
    replayed = ("guard", "replay", "--input", "-", "--json")
    flagged = [
        json.loads(run(*replayed, *store, given=pushed).stdout)["sources"]["rule"]["flagged"]
        for store in ((), STORE)
    ]
    assert flagged == [0, 1]


def test_rules_of_a_conversation_are_listed_by_either_option(run, tmp_path):
    with ToolMem(str(tmp_path / "m.db")) as memory:
        heard = Turn(user_message="Don't email Sarah yet.", conversation_id="c1")
        heard.tools = schemas_of(["send_email"])
        ToolMemoryCaptureHook(memory.rules, enabled=True).after_turn(heard)
    assert "no rule fits" in run("rules", "list", *STORE).stderr
    for option in ("--conversation", "--session"):
        assert "Don't email Sarah yet" in run("rules", "list", option, "c1", *STORE).stdout
    assert "--session" not in run("rules", "list", "--help").stdout


def test_the_history_of_a_rule_is_told_in_words(run, add, tmp_path):
    made = add()
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.tool_rule_put("@shell", "Never push to main", effect="ask", id=made)
    shown = run("rules", "show", made, *STORE).stdout
    assert ': changed by program; before, the effect: "deny"' in shown
    assert '"before"' not in shown


@pytest.fixture
def typed(tmp_path):
    """Runs `toolmem rules` in a terminal with a guarded store; returns exit code and output."""
    pty = pytest.importorskip("pty")

    def command(*arguments, answer="", meanwhile=lambda: None):
        leader, follower = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "CODEX"))}
        terminal = {"stdin": follower, "stdout": follower, "stderr": follower}
        asked = [*COMMAND, "rules", *arguments, *STORE]
        with subprocess.Popen(asked, cwd=tmp_path, **terminal, env=environment) as it:
            shown = b""
            while answer and b"[y/N]" not in shown:
                shown += os.read(leader, 4096)
            meanwhile()
            os.write(leader, answer.encode())
            code = it.wait(60)
        shown += os.read(leader, 65_536) if select([leader], [], [], 0)[0] else b""
        os.close(leader)
        os.close(follower)
        return code, shown.decode()

    return command


def test_commands_of_a_pseudo_terminal_are_the_users(add, run, typed, tmp_path):
    made = add()
    guard_by_user(tmp_path / "m.db", made)
    code, shown = typed("delete", made)
    assert code == 0, shown
    assert "no rule fits" in run("rules", "list", *STORE).stderr


def test_in_a_terminal_only_what_was_shown_and_agreed_to_is_approved(add, run, typed, tmp_path):
    made = add()
    guard_by_user(tmp_path / "m.db", made)

    def asks(effect):
        with ToolMem(str(tmp_path / "m.db")) as memory:
            put = memory.acting_as(Actor("agent")).tool_rule_put
            put("@shell", "Never push to main", effect=effect, id=made)

    asks("ask")
    assert typed("approve", made, answer="n\n")[0] == 130
    code, shown = typed("approve", made, answer="y\n", meanwhile=lambda: asks("remind"))
    assert code == 2 and "changed since you read it" in shown
    assert json.loads(run("rules", "show", made, "--json", *STORE).stdout)["effect"] == "deny"
    code, shown = typed("approve", made, "--yes")
    assert code == 0 and 'effect: "deny" -> "remind"' in shown
    assert json.loads(run("rules", "show", made, "--json", *STORE).stdout)["effect"] == "remind"


TEAM = "rules:\n- {id: a, tool: '@shell', rule: Never push, effect: %s, when: [{command: %s}]}\n"


def test_rules_go_to_another_store_through_a_file_of_the_team(run, add, tmp_path):
    add()
    assert "t.yaml holds 1 rule" in run("rules", "export", "t.yaml", *STORE).stdout
    text = (tmp_path / "t.yaml").read_text()
    (tmp_path / "t.yaml").write_text(text.replace("- id", "# see #42\n- id"))
    assert "same: " in run("rules", "import", "t.yaml", *STORE).stdout
    other = ("--store", "n.db")
    shown = run("rules", "import", "t.yaml", *other)
    assert (shown.returncode, "nothing is changed" in shown.stderr) == (1, True)
    assert "new: " in run("rules", "import", "t.yaml", "--yes", *other).stdout
    assert run("guard", "check", "Bash", "git push origin main", *other).returncode == 5
    assert run("rules", "export", "t.yaml", *other).returncode == 0
    assert (tmp_path / "t.yaml").read_text() == text.replace("- id", "# see #42\n- id")


def test_outside_of_a_terminal_a_file_restricts_and_what_loosens_waits(run, tmp_path):
    for effect, pattern in (("ask", "^git push"), ("deny", "^git push")):
        (tmp_path / "t.yaml").write_text(TEAM % (effect, pattern))
        assert run("rules", "import", "t.yaml", "--yes", *STORE).returncode == 0
    (tmp_path / "t.yaml").write_text(TEAM % ("ask", "^git push"))
    done = run("rules", "import", "t.yaml", "--yes", *STORE)
    assert (done.returncode, "looser: ask" in done.stdout) == (1, True)
    assert "(before: deny" in done.stdout
    assert run("guard", "check", "Bash", "git push", *STORE).returncode == 5
    assert 'effect: "deny" -> "ask"' in run("rules", "review", *STORE).stdout
    (tmp_path / "t.yaml").write_text("rules: []\n")
    done = run("rules", "import", "t.yaml", "--yes", *STORE)
    assert (done.returncode, "missing: deny" in done.stdout) == (0, True)
    assert run("guard", "check", "Bash", "git push", *STORE).returncode == 5


@pytest.mark.parametrize("text", ["rules: [{id: a}]", "<<<<<<< HEAD\n"])
def test_a_bad_file_of_the_team_changes_nothing(run, add, tmp_path, text):
    add()
    before = (tmp_path / "m.db").read_bytes()
    (tmp_path / "t.yaml").write_text(text)
    for arguments in (("import", "t.yaml", "--yes"), ("export", "t.yaml")):
        done = run("rules", *arguments, *STORE)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("error: t.yaml")
    assert (tmp_path / "t.yaml").read_text() == text
    assert (tmp_path / "m.db").read_bytes() == before
