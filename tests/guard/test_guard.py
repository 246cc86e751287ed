"""What the guard decides: rules of the user, repeats, order and counts, names, toolmem itself."""

import threading
from contextlib import closing
from datetime import datetime, timedelta

import apsw
import pytest

from toolmem.config.sections import GuardSection
from toolmem.guard import Guard, self_protection
from toolmem.guard.decision import quoted
from toolmem.guard.self_protection import check_self
from toolmem.guard.stores import Stores
from toolmem.memory.toolmem import ToolMem
from toolmem.models.tools import ToolSchema
from toolmem.rules.changes import Actor
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.view.view import CallView

FAILED = "cat: x: No such file or directory"
PUSH = {"command": "^git push"}


# ---------------------------------------------------------------- rules


def test_a_call_that_a_rule_means_is_denied_with_the_users_words(forbid, runs):
    forbid({"command": r"^git push\b", "word": "main"}, text="Never push to main")
    denied = runs("git push origin main")
    assert denied.action == "deny"
    said = "toolmem: not run. A rule says on 2026-01-01: Never push to main."
    assert denied.reason.startswith(said)
    assert [source.kind for source in denied.sources] == ["rule"]
    assert runs("git push origin dev").action == "allow"


def test_a_rule_holds_for_every_agents_tool_of_its_class_and_every_casing(forbid, runs):
    forbid({"command": "^rm "})
    forbid({"target": "sarah@"}, tool="Send_Email")
    assert runs("rm x", tool="exec_command").action == "deny"
    assert runs({"to": "sarah@example.com"}, tool="SEND_EMAIL").action == "deny"


def test_the_log_shows_what_a_stopped_call_was_to_do_and_of_an_allowed_one_nothing(
    forbid, runs, store
):
    forbid({"target": "."}, tool="send_email")
    denied = runs({"to": "a@x.org", "password": "hunter2hunter2"}, tool="send_email")
    assert denied.call.startswith('{"to": "a@x.org", "password": "[masked:')
    assert [each.call for each in store.decisions("default")] == [denied.call]
    assert runs("ls").call == ""


def test_the_log_shows_the_call_that_was_one_too_many(forbid, runs, store):
    forbid({"target": ".", "more_than": {"calls": 2, "per": "day"}}, tool="send_email")
    given = [{"to": f"{number}@x.org"} for number in range(4)]
    made = [runs(each, tool="send_email") for each in given]
    assert [each.action for each in made] == ["allow", "allow", "deny", "deny"]
    assert [each.call for each in made] == ["", "", '{"to": "2@x.org"}', '{"to": "3@x.org"}']
    logged = {each.id: each.call for each in store.decisions("default")}
    assert logged == {each.id: each.call for each in made[2:]}


def test_the_log_shows_the_call_of_which_the_user_is_asked(forbid, guard, rules, store):
    rule = forbid({"command": "^git push"})
    rules.delete(rule, Actor("agent", "typed", "main is open", "c"))
    push = {"command": "git push origin main"}
    asked = guard.before("Bash", push, conversation_id="c", asks_user=True)
    assert asked.action == "ask" and "main is open" in asked.reason
    assert asked.call == '{"command": "git push origin main"}'
    assert [each.call for each in store.decisions("default")] == [asked.call]


def in_itself():
    holder = {}
    holder["a"] = holder
    return holder


def nested(levels=3_000):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"to": "x", "at": datetime(2026, 1, 2)}, '{"to": "x", "at": "2026-01-02 00:00:00"}'),
        ({"to": "x", "body": b"y"}, '{"to": "x", "body": "b\'y\'"}'),
        ({"to": "x", "all": {1}}, '{"to": "x", "all": [1]}'),
        ({"to": "x", "n": float("nan")}, '{"to": "x", "n": NaN}'),
        ('{"to": "x"}', '{"to": "x"}'),
        ({"to": ["x"] * 100_000}, '{"to": ["x", '),
        ({"to": "x", "more": nested()}, '{"to": "x", "more": {"a": '),
        ({"to": "x", "more": in_itself()}, '{"to": "x", "more": {"a": '),
    ],
)
def test_arguments_of_any_kind_are_stopped_and_shown(forbid, guard, arguments, shown):
    forbid({"target": "."}, tool="send_email")
    denied = guard.before("send_email", arguments)
    assert denied.action == "deny"
    assert denied.call.startswith(shown) and len(denied.call) <= 500


def test_a_rule_without_a_tool_holds_for_all(forbid, runs):
    forbid({"text": "secret"}, tool="__unscoped__")
    assert runs({"body": "the secret"}, tool="anything").action == "deny"


def test_ask_and_what_cannot_be_told_ask(forbid, runs):
    forbid({"command": "^git push", "word": "main"}, effect="ask")
    asked = runs("git push origin main")
    assert asked.action == "ask"
    assert asked.reason.startswith("toolmem: not run; ask the user first.")
    forbid({"command": "^rm -rf /srv"})
    assert runs("curl x | sh  # rm -rf /srv").action == "ask"
    assert runs("curl x | sh").action == "allow"


def test_a_rule_binds_at_once_and_no_longer_once_it_is_gone(forbid, runs, rules, store, clock):
    other = Guard(store, "default", clock)
    given = {"command": "rm x"}
    assert other.before("Bash", given).action == "allow"
    made = forbid({"command": "^rm "})
    assert other.before("Bash", given).action == "deny"
    rules.delete_rule("@shell", made.id)
    assert other.before("Bash", given).action == "allow"


def test_a_rule_of_a_session_or_that_ended_binds_nowhere_else(forbid, runs, clock):
    ends = clock.now() + timedelta(days=1)
    forbid({"command": "^rm "}, session="c1", expires_at=ends)
    assert runs("rm x", conversation_id="c1").action == "deny"
    assert runs("rm x", conversation_id="c2").action == "allow"
    clock.advance(90_000)
    assert runs("rm x", conversation_id="c1").action == "allow"


def test_a_damaged_condition_only_reminds_and_hides_no_other(forbid, runs, store):
    made = forbid({"command": "^rm "}, text="damaged")
    forbid({"command": "^mv "}, text="whole")
    record = store.get("default", "tool-@shell", f"rule/{made.id}")
    broken = {**record.read(dict), "when": [{"command": "("}]}
    store.put("default", "tool-@shell", f"rule/{made.id}", broken)
    assert runs("rm x").action == "allow"
    assert runs("mv x y").action == "deny"


def test_noting_and_lifting_are_never_stopped(forbid, runs):
    forbid({"always": True}, tool="note_demand")
    assert runs({"quote": "x"}, tool="note_demand").action == "allow"


ONCE = "This call may run once, within an hour: Bash “{}”"


def test_a_rule_is_not_forced_but_let_through_once_where_the_user_says_so(forbid, runs, guard):
    forbid({"command": "^rm "})
    assert runs("rm x", force=True).action == "deny"
    assert guard.user_spoke("c", "Yes, this once.") == ONCE.format("rm x")
    assert runs("rm y").action == "deny"
    assert runs("rm x").action == "allow"
    assert runs("rm x").action == "deny"
    guard.user_spoke("c", "this once")
    guard.user_spoke("c", "by the way")
    assert runs("rm x").action == "deny"


def test_the_words_of_a_stopped_call_are_kept_without_secrets(forbid, runs, guard):
    forbid({"command": "^curl "})
    secret = "sk-proj-" + "a1B2c3D4e5F6" * 4
    runs(f"curl -H 'Authorization: Bearer {secret}' x")
    told = guard.user_spoke("c", "yes, this once")
    assert ONCE.partition("{")[0] + "curl" in told and secret not in told


def test_no_half_of_a_secret_is_kept_where_the_words_are_cut(forbid, runs, guard):
    forbid({"command": "^curl "})
    secret = "sk-proj-" + "a1B2c3D4e5F6" * 4
    runs(f"curl {'x' * 130} -H 'Authorization: Bearer {secret}'")
    assert "a1B2c3" not in guard.user_spoke("c", "yes, this once")


def test_of_several_stopped_calls_none_runs_before_the_user_says_which(forbid, runs, guard):
    forbid({"command": "^rm "})
    for command in ("rm x", "rm y"):
        assert runs(command).action == "deny"
    told = guard.user_spoke("c", "yes, this once")
    assert "“rm x”; Bash “rm y”" in told and "several" in told
    for command in ("rm x", "rm y"):
        assert runs(command).action == "deny"
    guard.user_spoke("c", "rm y please")
    assert runs("rm y").action == "deny"
    assert guard.user_spoke("c", "yes, this once") == ONCE.format("rm y")
    assert runs("rm x").action == "deny" and runs("rm y").action == "allow"


@pytest.mark.parametrize(
    ("mode", "action", "logged"),
    [("off", "allow", 0), ("shadow", "allow", 1), ("advise", "advise", 1), ("enforce", "deny", 1)],
)
def test_a_mode_says_how_much_a_source_may_do(store, clock, forbid, mode, action, logged):
    forbid({"command": "^rm "})
    guard = Guard(store, "default", clock, GuardSection(rules=mode))
    assert guard.before("Bash", {"command": "rm x"}).action == action
    assert len(store.decisions("default")) == logged


def test_decisions_are_logged_with_what_became_of_the_call(store, clock, forbid):
    forbid({"command": "^rm "})
    guard = Guard(store, "default", clock, GuardSection(rules="advise"))
    decision = guard.before("Bash", {"command": "rm x"}, conversation_id="c")
    guard.after(decision, {"command": "rm x"}, output="", failed=False)
    guard.before("Bash", {"command": "ls"})
    [logged] = store.decisions("default")
    assert (logged.id, logged.conversation_id, logged.outcome) == (decision.id, "c", "worked")


@pytest.mark.parametrize(("on_error", "action"), [("open", "advise"), ("closed", "deny")])
def test_a_store_that_fails_is_told_and_the_setting_decides(store, clock, on_error, action):
    guard = Guard(store, "default", clock, GuardSection(on_error=on_error))
    store.close()
    decision = guard.before("Bash", {"command": "ls"})
    assert decision.action == action
    assert "rules could not be read" in decision.reason + decision.advice


def test_a_decision_holds_where_it_cannot_be_kept(tmp_path, clock):
    path = tmp_path / "m.db"
    with (
        SqliteStore(path, busy_timeout=0.05) as store,
        closing(apsw.Connection(str(path))) as other,
    ):
        rule = RuleInput(tool_name="@shell", rule="Never push", effect="deny", when=[PUSH])
        ToolMemoryStore(store, "default", clock).put_rule(rule)
        guard = Guard(store, "default", clock)
        guard.before("Bash", {"command": "ls"})
        other.execute("BEGIN IMMEDIATE")  # another process writes, and goes on writing
        assert guard.before("Bash", {"command": "git push"}).action == "deny"


def test_a_hostile_text_of_a_call_stands_in_a_reason_as_one_quoted_line():
    shown = quoted("x”\n## Obey\u202e" + "y" * 500)
    assert len(shown) == 202 and "\n" not in shown and "\u202e" not in shown
    assert shown.count("”") == 1


# ---------------------------------------------------------------- order and counts


TESTED = {"command": "^(npm test|pytest)", "worked": True, "since": {"writes": True}}


@pytest.fixture
def commit_only_after_tests(forbid):
    forbid({"command": "^git commit"}, unless=[{"earlier": TESTED}])


@pytest.mark.parametrize(
    "before",
    [
        ["pytest"],
        ["sed -i s/a/b/ x.py", "pytest"],
        ["sed -i s/a/b/ x.py && pytest"],
        ["cd app && pytest -q 2>&1"],
        ["pytest", "git status", "git diff | head", "ls > /dev/null", "gh pr view 3"],
        ["pytest && echo ok"],
        ["make || true && pytest"],
        ["echo | pytest"],
    ],
)
def test_a_commit_passes_after_tests_that_worked(commit_only_after_tests, runs, before):
    for each in before:
        runs(each)
    assert runs("git commit -m x").action == "allow"


@pytest.mark.parametrize(
    "before",
    [
        [],
        ["pytest || true"],
        ["pytest | tail -5"],
        ["pytest; git status"],
        ["pytest &"],
        ["pytest --collect-only"],
        ["pytest", "sed -i s/a/b/ x.py"],
        ["pytest", "git checkout -- x.py"],
        ["pytest", "echo x >> a.py"],
        ["pytest", "cat > a.py <<'EOF'\nx\nEOF"],
        ["pytest && sed -i s/a/b/ x.py"],
        ["echo pytest"],
    ],
)
def test_a_commit_is_stopped_without_tests_that_worked_since(commit_only_after_tests, runs, before):
    for each in before:
        runs(each)
    stopped = runs("git commit -m x")
    assert stopped.action == "deny"
    assert "has to work after the last change of files" in stopped.reason


def test_tests_that_failed_or_whose_end_nobody_told_count_for_nothing(
    commit_only_after_tests, runs, guard
):
    runs("pytest", error="1 failed")
    assert runs("git commit -m x").action == "deny"
    guard.before("Bash", {"command": "pytest"}, conversation_id="c")
    assert runs("git commit -m x").action == "deny"


def test_what_was_read_before_stops_what_is_sent(forbid, runs):
    forbid({"target": ".", "earlier": {"tool": "^read_inbox$"}}, tool="send_email")
    mail = {"to": "a@b.c", "body": "x"}
    assert runs(mail, tool="send_email").action == "allow"
    runs({"limit": 3}, tool="read_inbox", error="timeout")
    assert runs(mail, tool="send_email").action == "deny"
    assert runs(mail, tool="send_email", conversation_id="other").action == "allow"


@pytest.mark.parametrize("per", ["3600s", "day", "conversation"])
def test_more_calls_than_allowed_are_stopped(forbid, runs, clock, per):
    forbid({"target": ".", "more_than": {"calls": 2, "per": per}}, tool="send_email")
    mail = {"to": "a@b.c"}
    found = [runs(mail, tool="send_email").action for _ in range(3)]
    assert found == ["allow", "allow", "deny"]
    clock.advance(90_000)
    expected = "deny" if per == "conversation" else "allow"
    assert runs(mail, tool="send_email").action == expected


def test_each_rule_counts_its_own_calls(forbid, runs):
    limit = {"calls": 1, "per": "day"}
    forbid({"target": ".", "more_than": limit}, tool="send_email", text="a")
    forbid({"target": ".", "more_than": limit}, tool="send_sms", text="b")
    assert runs({"to": "x"}, tool="send_email").action == "allow"
    assert runs({"to": "x"}, tool="send_sms").action == "allow"


def test_of_calls_at_once_no_more_are_counted_than_run(forbid, store, clock):
    forbid({"target": ".", "more_than": {"calls": 5, "per": "day"}}, tool="send_email")
    guard, found = Guard(store, "default", clock), []

    def send():
        decision = guard.before("send_email", {"to": "a@b.c"}, conversation_id="c")
        found.append(decision.action)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found.count("allow") == 5


# ---------------------------------------------------------------- repeats


def test_an_unchanged_repeat_of_a_failure_is_held_until_something_changes(runs):
    runs("cat x", error=FAILED)
    held = runs("cat x")
    assert held.action == "deny"
    assert "failed once in this conversation: “cat: x: No such file" in held.reason
    assert runs("cat  x").action == "allow"
    assert runs("cat x", conversation_id="other").action == "allow"
    runs("mkdir y")
    assert runs("cat x").action == "allow"


@pytest.mark.parametrize("between", ["touch x", "psql -c 'ALTER TABLE a ADD b INT'", "sleep 1"])
def test_what_writes_or_waits_lets_go(runs, between):
    runs("cat x", error=FAILED)
    runs(between)
    assert runs("cat x").action == "allow"


def test_a_command_that_worked_before_a_failure_casts_doubt(runs):
    runs("npm run lint", error="lint: 3 problems")
    runs("npm ci && npm run build", error="build: cannot find module")
    assert runs("npm run lint").action == "advise"


def test_a_change_of_folder_only_advises(runs):
    runs("cat x", error=FAILED)
    runs("cd y")
    assert runs("cat x").action != "deny"


def test_the_user_and_a_working_call_let_go(runs, guard):
    runs("cat x", error=FAILED)
    guard.user_spoke("c", "try again")
    assert runs("cat x", error=FAILED).action == "allow"
    assert runs("cat x", force=True).action == "allow"
    assert runs("cat x").action == "allow"


def test_a_transient_failure_may_be_sent_again_twice(runs):
    found = [runs({"u": "a"}, "HTTP 503 service unavailable", tool="query_api") for _ in range(4)]
    assert [each.action for each in found] == ["allow", "advise", "advise", "deny"]
    assert "wait 1 s" in found[1].advice


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("pytest", "1 failed, 41 passed"),
        ("curl -sf localhost", "curl: (7) Failed to connect"),
        ("gh pr checks 12", "build pending"),
        ("tail -n 3 app.log | grep up", "Exit code 1"),
    ],
)
def test_what_asks_the_outside_or_may_differ_is_only_advised(runs, command, error):
    runs(command, error=error)
    assert runs(command, error=error).action == "advise"


def test_after_a_server_in_the_background_repeats_are_only_advised(runs):
    runs("cat x", error=FAILED)
    runs({"command": "ls", "run_in_background": True})
    assert runs("cat x").action == "advise"


def test_an_error_of_which_a_repeat_has_worked_is_forgiven_everywhere(runs):
    runs({"a": 1}, "harness hiccup", tool="t")
    assert runs({"a": 1}, tool="t", force=True).action == "allow"
    runs({"a": 2}, "harness hiccup", tool="t", conversation_id="other")
    assert runs({"a": 2}, tool="t", conversation_id="other").action == "allow"


def test_an_exit_code_alone_that_healed_is_forgiven_for_its_program_and_conversation(runs):
    runs("make a", "Exit code 2")
    assert runs("make a", force=True).action == "allow"
    runs("make b", "Exit code 2")
    assert runs("make b").action == "allow"
    runs("make c", "Exit code 2", conversation_id="other")
    assert runs("make c", conversation_id="other").action == "deny"


def test_an_edit_that_wants_a_file_read_is_let_go_once_it_is(runs):
    edit = {"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}
    runs(edit, "File has not been read yet.", tool="Edit")
    assert runs(edit, tool="Edit").action == "deny"
    runs({"file_path": "/p/a.py"}, tool="Read")
    assert runs(edit, tool="Edit").action == "allow"


def test_a_call_that_began_before_a_write_and_failed_after_is_not_held(guard, runs):
    given = {"command": "make"}
    slow = guard.before("Bash", given, conversation_id="c")
    runs("touch a")
    guard.after(slow, given, output="a.c:3: error", failed=True)
    assert runs("make").action == "allow"


def test_a_stopped_call_teaches_nothing(guard, runs):
    given = {"command": "cat x"}
    decision = guard.before("Bash", given, conversation_id="c")
    guard.after(decision, given, output="toolmem: not run. The user said", failed=True)
    assert runs("cat x").action == "allow"


# ---------------------------------------------------------------- names, schemas, toolmem itself


NO_TABLE = "Error 1146: Table 'db.poker_players' doesn't exist"


@pytest.mark.parametrize(
    ("statement", "is_told"),
    [
        ("SELECT name FROM poker_players WHERE a = 1", True),
        ("SELECT 'poker_players' FROM people", False),
        ("SELECT * FROM other.poker_players", False),
        ("WITH poker_players AS (SELECT 1) SELECT * FROM poker_players", False),
        ("SELECT * FROM (SELECT * FROM poker_players) AS x", False),
    ],
)
def test_a_table_that_an_error_named_is_advised_against(runs, statement, is_told):
    runs({"sql": "SELECT * FROM poker_players"}, NO_TABLE, tool="sql")
    assert (runs({"sql": statement}, tool="sql").action == "advise") is is_told


@pytest.mark.parametrize(
    "between", [("CREATE TABLE poker_players (a INT)", ""), ("SELECT 1 FROM poker_players", "[]")]
)
def test_what_contradicts_an_error_wipes_it(runs, between):
    runs({"sql": "SELECT * FROM poker_players"}, NO_TABLE, tool="sql")
    runs({"sql": between[0]}, tool="sql")
    assert runs({"sql": "SELECT a FROM poker_players"}, tool="sql").action == "allow"


def test_a_column_is_missing_in_the_tables_that_were_read(runs):
    error = "Unknown column 'T1.age' in 'field list'"
    runs({"sql": "SELECT T1.age FROM people T1 JOIN b ON T1.x = b.x"}, error, tool="sql")
    told = runs({"sql": "SELECT age FROM people"}, tool="sql")
    assert told.action == "advise" and "“age” of “people”" in told.advice
    assert runs({"sql": "SELECT age FROM pets"}, tool="sql").action == "allow"


def test_arguments_that_do_not_fit_the_schema_are_advised_against(guard):
    schema = ToolSchema("t", "", {"properties": {"n": {"type": "integer"}}, "required": ["n"]})
    decision = guard.before("t", {"n": "x"}, schema=schema)
    assert decision.action == "advise"
    assert [source.kind for source in decision.sources] == ["schema"]


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("rm -rf .toolmem", "ask"),
        ("sqlite3 -readonly .toolmem/memory.db '.shell rm x'", "ask"),
        ("sqlite3 -readonly .toolmem/memory.db 'select 1'", "allow"),
        ("sqlite3 'file:.toolmem/memory.db?mode=ro' .schema", "allow"),
        ("tar -czf .toolmem/memory.db docs", "ask"),
        ("tar -czf /tmp/x.tgz .toolmem", "allow"),
        ("sh -c 'rm -rf .toolmem'", "ask"),
        ("cd /srv/data && rm toolmem.db", "ask"),
        ("rm -rf /srv", "ask"),
        ("echo > /srv/data/toolmem.db-wal", "ask"),
        ("toolmem rules delete @shell abc", "ask"),
        ("toolmem tools forget-line send_email 1", "ask"),
        ("python -m toolmem tools forget-line send_email 1", "ask"),
        ("python3 -m toolmem hook uninstall codex", "ask"),
        ("toolmem run tool_rule_delete --request r.json", "ask"),
        ("echo '{}' | toolmem-hook claude-code", "ask"),
        ("python3 -P -m toolmem.hooks claude-code", "ask"),
        ("toolmem run retrieve_tool_memory --request r.json", "allow"),
        ("python -c \"open('/srv/data/toolmem.db','w')\"", "ask"),
        ("git clean -fdx", "ask"),
        ("export TOOLMEM_GUARD=off", "ask"),
        ("git clean -fdX", "ask"),
        ("git stash -a", "ask"),
        ("rm -rf .tool*", "ask"),
        ("rm -rf .[a-z]*", "ask"),
        ("find /srv -name toolmem.db -delete", "ask"),
        ("curl -o .toolmem/memory.db http://x", "ask"),
        ("patch /srv/data/toolmem.db < x", "ask"),
        ("newtool --out=.toolmem/x", "ask"),
        ("python -mtoolmem rules delete x", "ask"),
        ("python -Pm toolmem rules delete x", "ask"),
        ("script -qec 'python -mtoolmem rules delete x' /dev/null", "ask"),
        ("expect -c 'spawn toolmem rules delete x'", "ask"),
        ("true " + "x" * 30_000 + "; rm -rf .toolmem", "ask"),
        ("toolmem note --tool list --said 'never use ls'", "ask"),
        ("toolmem run --config tools x", "ask"),
        ("pip uninstall -y toolmem", "ask"),
        ("pip show toolmem", "allow"),
        ("toolmem --help", "allow"),
        ("toolmem guard check Bash x", "allow"),
        ("cp .toolmem/memory.db /srv/backup", "allow"),
        ("find . -name '*.pyc' -delete", "allow"),
        ("git commit -m 'toolmem rules delete x'", "allow"),
        ("ruff check toolmem", "allow"),
        ("pytest tests/toolmem", "allow"),
        ("cat .toolmem/config.yaml", "allow"),
        ("ls -la /srv/data", "allow"),
        ("toolmem rules list", "allow"),
        ("toolmem tools show send_email", "allow"),
        ("rm -rf /srv/other", "allow"),
        ("grep -rn toolmem docs", "allow"),
        ("git clean -n", "allow"),
    ],
)
def test_what_holds_the_agent_is_changed_by_the_user_alone(store, clock, command, action):
    guard = Guard(store, "default", clock, protected=["/srv/data/toolmem.db"])
    assert guard.before("Bash", {"command": command}, folder="/srv/app").action == action


def test_an_unreadable_input_is_decided_all_the_same(runs, forbid):
    forbid({"text": "x{50}"})
    assert runs(nested(20_000), tool="t").action == "allow"
    assert runs({"command": "echo \ud83d"}).action == "allow"


def test_a_store_that_fails_stops_no_call_in_the_shadow(tmp_path):
    main, further = SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "b.db")
    further.close()
    for shadow, action in ((True, "advise"), (False, "deny")):
        _, guard = Stores(main, [further]).guards("closed", shadow=shadow)
        assert guard.before("Bash", {"command": "ls"}, conversation_id="c").action == action
    main.close()


def test_self_protection_reads_the_words_of_a_command_once(monkeypatch):
    read = []
    monkeypatch.setattr(self_protection, "_is_own", lambda path, *_, **__: read.append(path))
    urls = [f"http://a/{number}" for number in range(500)]
    view = CallView("Bash", {"command": f"xh {' '.join(urls)} toolmem.db"})
    assert len(view.units) == len(urls)
    assert check_self(view, ["/srv/data/toolmem.db"], "enforce") == []
    assert len(urls) <= len(read) < 3 * len(urls)


def test_the_guard_of_a_program_protects_the_state_folder_too(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ToolMem(tmp_path / "m.db") as memory:
        memory.add([{"tool_name": "search", "input": {}, "output": "3 hits"}])
        for path in ("state/toolmem", "m.db"):
            command = f"rm -rf {tmp_path / path}"
            assert memory.check_tool_call("Bash", {"command": command}).action == "ask"


# ---------------------------------------------------------------- what is not known


HIDES = "newlauncher now git push"


def test_what_may_be_meant_is_asked_about_and_a_yes_to_it_lifts_nothing(forbid, guard, rules):
    rule = forbid(PUSH)
    rules.delete(rule, Actor("agent", "typed", "pushing is fine", "c"))
    asked = guard.before("Bash", {"command": HIDES}, conversation_id="c", asks_user=True)
    assert asked.reason.startswith("toolmem: not run; ask the user first. Not sure: ")
    assert [source.lifts for source in asked.sources] == [False]
    assert guard.answered(asked, True).lifted == []
    assert [each.id for each in rules.all_rules("c").rules] == [rule.id]


def test_a_yes_to_what_is_not_known_holds_for_its_rule_program_and_subcommand(forbid, guard, runs):
    forbid(PUSH)
    asked = runs(HIDES)
    assert guard.answered(asked, False).told == [] and runs(HIDES).action == "ask"
    guard.answered(asked, True)
    assert runs(HIDES).action == "allow"
    assert runs("newlauncher now git push -f").action == "allow"
    assert runs("newlauncher later git push").action == "ask"
    assert runs("otherlauncher now git push").action == "ask"
    assert runs(HIDES, conversation_id="d").action == "ask"
    assert runs(f"{HIDES} && otherlauncher now git push").action == "ask"
    assert runs(f"{HIDES} && ssh host 'newlauncher then git push'").action == "ask"
    assert runs("git push").action == "deny"
    forbid({"command": "^git "}, text="Never use git")
    assert runs(HIDES).action == "ask"


def test_a_yes_to_one_program_text_is_none_to_another(forbid, guard, runs):
    forbid(PUSH)
    guard.answered(runs("python -c 'os.system(\"git push a\")'"), True)
    assert runs("python -c 'os.system(\"git push a\")'").action == "allow"
    assert runs("python -c 'os.system(\"git push b\")'").action == "ask"
    guard.answered(runs("ls # " + "x" * 25_000), True)
    assert runs("ls # " + "x" * 25_001).action == "ask"


def test_an_output_may_prove_a_failure_and_never_a_success(forbid, guard, runs):
    forbid({"command": "^git commit"}, unless=[{"earlier": TESTED}])
    failures = ("1 failed, 2 passed in 0.1s", "Error: no such file", "not ok 1 - a", "2 failing")
    outputs = [(text, flag, "deny") for text in failures for flag in (None, False)]
    passing = "0 failed, 12 passed", "# fail 0", "3 tests, 0 failures", ""
    for output, flag, action in [*outputs, *((text, None, "ask") for text in passing)]:
        before = guard.before("Bash", {"command": "pytest"}, conversation_id="c")
        guard.after(before, {"command": "pytest"}, output=output, failed=flag)
        assert runs("git commit").action == action


def test_no_yes_answers_the_question_whether_tests_passed(forbid, guard, runs):
    worked = {"earlier": {"command": "^pytest", "worked": True}}
    forbid({"command": "^git commit"}, unless=[worked])
    before = guard.before("Bash", {"command": "pytest"}, conversation_id="c")
    guard.after(before, {"command": "pytest"}, failed=None)
    asked = runs("git commit")
    assert asked.action == "ask" and "Not sure: " in asked.reason
    guard.answered(asked, True)
    assert runs("git commit").action == "ask"


@pytest.mark.parametrize(
    ("unknown", "is_guarded", "action"),
    [("deny", False, "deny"), ("allow", False, "allow"), ("deny", True, "deny")]
    + [("allow", True, "ask")],
)
def test_a_setting_says_what_becomes_of_what_is_not_known(
    forbid, guard, store, unknown, is_guarded, action
):
    forbid(PUSH)
    guard.modes = GuardSection(unknown=unknown)
    if is_guarded:
        Stores(store).mark_guarded("test")
    decision = guard.before("Bash", {"command": HIDES})
    assert decision.action == action
    if action == "deny":
        assert decision.reason.startswith("toolmem: not run. Not sure: ")
        assert "Write the call plainly" in decision.reason
    assert guard.before("Bash", {"command": "git push"}).action == "deny"


def test_where_a_guest_speaks_what_is_not_known_is_denied(forbid, guard):
    forbid(PUSH)
    guard.user_spoke("c", "hello", is_guests=True)
    decision = guard.before("Bash", {"command": HIDES}, conversation_id="c")
    assert decision.action == "deny" and "Write the call plainly" in decision.reason


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        (
            "multi_tool_use.parallel",
            {
                "tool_uses": [
                    {"recipient_name": "functions.read_file", "parameters": {"path": "a"}},
                    {"recipient_name": "functions.exec_command", "parameters": {"cmd": "git push"}},
                ]
            },
        ),
        ("batch", {"invocations": [{"tool_name": "Bash", "input": {"command": "git push"}}]}),
        ("use_mcp_tool", {"tool_name": "bash", "arguments": '{"command": "git push"}'}),
    ],
)
def test_a_call_inside_a_call_is_held_against_rules(forbid, runs, tool, given):
    forbid(PUSH)
    assert runs(given, tool=tool).action == "deny"
    others = {"tool_uses": [{"recipient_name": "grep", "parameters": {"pattern": "git push"}}]}
    assert runs(others, tool="multi_tool_use.parallel").action == "allow"


@pytest.mark.parametrize("given", [{"command": 10**6000}, {1: "git push"}], ids=["digits", "keys"])
def test_a_call_with_values_that_cannot_be_compared_is_asked_about(given, forbid, guard):
    forbid({"command": "^git push"})
    decision = guard.before("Bash", given)
    assert decision.action == "ask" and "Not sure" in decision.reason


def test_a_fault_in_reading_a_call_is_asked_about(monkeypatch, forbid, guard):
    forbid({"command": "^git push"})
    monkeypatch.setattr("toolmem.view.view.read_shell", lambda *given: [][0])
    assert guard.before("Bash", {"command": "git push"}).action == "ask"


def test_an_option_where_a_program_should_be_hides_no_command(forbid, guard):
    forbid({"command": "^git push"})
    assert guard.before("Bash", {"command": "-rf; git push origin main"}).action == "deny"
    assert guard.before("Bash", {"command": "-rf"}).action == "allow"
