"""A team's file of rules: the same bytes for the same rules, merged by git, believed as far as it restricts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.processor_time import grows_at_most
from toolmem.engine import StoreFile
from toolmem.errors import RequestError
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.light_models import Said, ToolMemoryRule
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.kept_rules import location_of
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.stored_rules import THIS_SESSION
from toolmem.rules.team_file import LONGEST, TEAM_FILE, TeamFile, as_team_file, read_team_file
from toolmem.rules.team_import import import_change, team_changes
from toolmem.rules.users_decisions import accept
from toolmem.store.journal_changes import journal_here, store_key

NOW = datetime(2026, 11, 24, tzinfo=UTC)
FORCE = [{"command": r"^git\s+push", "word": "-f|--force"}]
SAID = Said(by="program", time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def held(tmp_path: Path) -> None:
    """Hooks stand in an agent's settings."""
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))


def store_in(folder: Path) -> RuleStore:
    path = folder / ".toolmem" / "memory.db"
    path.parent.mkdir(parents=True)
    store = StoreFile(path)
    return RuleStore(store.protocol, clock=store.clock)


@pytest.fixture
def rules(tmp_path: Path) -> RuleStore:
    return store_in(tmp_path / "repo")


async def filled(rules: RuleStore) -> None:
    when = {"when": FORCE, "unless": [{"command": "--dry-run"}]}
    examples = {
        "stops": [{"tool": "Bash", "arguments": {"command": "git push -f"}}],
        "passes": [{"tool": "Bash", "arguments": {"command": "git push"}}],
    }
    told: dict[str, Any] = {"source": "user_explicit", "said": SAID}
    await rules.put_rule("send_email", "never email Sarah at sarah@example.com", priority="critical", **told)
    await rules.put_rule("@shell", "no forced pushes", effect="deny", when={**when, **examples}, **told)
    await rules.put_rule("delete_file", "ask me: before you delete #anything", effect="ask", when=True, said=SAID)
    await rules.put_rule(
        "search", '删除前先问我 "yes"\u202e \U0001f600', expires_at=NOW + timedelta(days=9_999), said=SAID
    )


async def text_of(rules: RuleStore) -> str:
    return as_team_file((await rules.all_rules())[0], NOW)


def read(text: str) -> TeamFile:
    return read_team_file(text.encode(), "rules.yaml")


async def taken_in(rules: RuleStore, text: str) -> list[str]:
    """What its user is told of it."""
    changes = team_changes(read(text), (await rules.all_rules())[0], rules.clock.now())
    return [told for each in changes if (told := await import_change(rules, each))]


async def kinds(rules: RuleStore, text: str) -> list[str]:
    return [each.kind for each in team_changes(read(text), (await rules.all_rules())[0], rules.clock.now())]


async def only(rules: RuleStore, tool: str) -> ToolMemoryRule:
    (rule,) = await rules.list_rules(tool)
    return rule


# ---------------------------------------------------------------- the file


async def test_the_same_rules_give_the_same_bytes_from_whichever_store(rules: RuleStore, tmp_path: Path) -> None:
    await filled(rules)
    text = await text_of(rules)
    fresh = store_in(tmp_path / "other")
    assert await taken_in(fresh, text) == []
    assert await text_of(fresh) == text
    assert await kinds(fresh, text) == await kinds(rules, text) == []
    assert text.isprintable() is False  # line ends alone
    assert text.replace("\n", "").isprintable()
    assert '"删除前先问我 \\"yes\\"\\U0000202e 😀"' in text


async def test_a_block_says_what_a_reviewer_asks(rules: RuleStore) -> None:
    await filled(rules)
    assert (
        r"""
- tool: "@shell"
  rule: "no forced pushes"
  effect: "deny"
  priority: "normal"
  when:
    - {"command": "^git\\s+push", "word": "-f|--force"}
  unless:
    - {"command": "--dry-run"}
  stops:
    - {"arguments": {"command": "git push -f"}, "tool": "Bash"}
  passes:
    - {"arguments": {"command": "git push"}, "tool": "Bash"}
  said_by: "user"
  said_at: "2026-01-02T03:04:05Z"
"""
        in await text_of(rules)
    )


async def test_what_binds_one_session_or_nobody_stands_in_no_file(rules: RuleStore) -> None:
    await rules.put_rule("bash", "for now use tabs", tags=[THIS_SESSION])
    await rules.for_agent().put_rule("bash", "the tests take a minute", priority="high")
    await rules.put_rule("bash", "never use sudo", status="proposed")
    await rules.put_rule("bash", "ls failed three times", source="post_turn")
    assert read(await text_of(rules)).rules == {}


async def test_a_rule_may_be_written_by_hand_as_it_is_put(rules: RuleStore) -> None:
    await taken_in(rules, "- tool: bash\n  rule: never use sudo\n  priority: critical\n")
    rule = await only(rules, "bash")
    assert (rule.effect, rule.priority, rule.checked, rule.by) == ("deny", "critical", True, "program")
    assert TEAM_FILE in rule.tags
    assert not rule.is_users


async def test_git_merges_the_file_and_a_conflict_is_refused_with_its_line(rules: RuleStore, tmp_path: Path) -> None:
    await filled(rules)
    text, path = await text_of(rules), tmp_path / "shared" / "rules.yaml"
    path.parent.mkdir()

    def git(*words: str) -> int:
        given = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words]
        return subprocess.run(given, cwd=path.parent, capture_output=True, check=False).returncode

    def committed(branch: str, before: str, after: str) -> None:
        assert before in text
        assert git("checkout", "-q", "-B", branch, "base") == 0
        path.write_text(text.replace(before, after), encoding="utf-8")
        assert git("commit", "-qam", branch) == 0

    path.write_text(text, encoding="utf-8")
    assert [git("init", "-q"), git("add", "."), git("commit", "-qm", "rules"), git("branch", "base")] == [0] * 4
    committed("one", 'unless:\n    - {"command": "--dry-run"}\n  ', "")
    committed("two", '- tool: "search"', '- tool: "run_sql"\n  rule: "never drop a table"\n\n- tool: "search"')
    committed("three", '{"command": "--dry-run"}', '{"command": "--no-op"}')

    assert git("checkout", "-q", "two") == git("merge", "-q", "one") == 0
    merged = path.read_text(encoding="utf-8")
    assert sorted(await kinds(rules, merged)) == ["added", "changed"]

    assert git("merge", "-q", "three") != 0
    lines = path.read_text(encoding="utf-8").split("\n")
    line = next(number for number, each in enumerate(lines, 1) if each.startswith("<<<<<<<"))
    with pytest.raises(RequestError, match=rf"rules\.yaml, line {line}: git left a conflict here"):
        read(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- nobody vouches for it

GOOD = '- tool: "bash"\n  rule: "never use sudo"\n'


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('- tool: "a"\n  rule: [\n', "not YAML"),
        ('- tool: "a"\n  rule: !!python/object/apply:os.system ["true"]\n', "tag"),
        ('- tool: "a"\n  rule: "x"\n  rule: "y"\n', "stands twice"),
        ('- tool: "a"\n  rule: "x"\n  loosens: "y"\n', "'loosens' is no field"),
        ('- tool: "a"\n', "rule"),
        ('- tool: 5\n  rule: "x"\n', "expected text, got int"),
        ('- tool: "a"\n  rule: "x"\n  effect: allow\n', "effect: expected one of"),
        ('- tool: "a"\n  rule: "x"\n  when:\n    - {"command": "(?=x)"}\n', "look-around"),
        ('- tool: "a"\n  rule: "x"\n  when:\n    - {"comand": "x"}\n', "comand"),
        ('- tool: "a"\n  rule: "x"\n  when: true\n  unless:\n    - {"command": "x"}\n', "unless: belongs to"),
        ('- tool: "a"\n  rule: "x"\n  when: {"$ref": "http://example.com"}\n', "not allowed"),
        ('- tool: "a"\n  rule: "x"\n  until: "soon"\n', "until: expected a time"),
        ('- tool: "a"\n  rule: "x"\nloose: "y"\n', "not YAML"),
        ('- tool: "a"\n  rule: ' + "[" * 400 + "]" * 400 + "\n", "nested"),
        (GOOD.replace("never use", "Never  use"), "stands twice"),
    ],
)
def test_one_bad_rule_is_named_with_its_line_and_takes_no_good_one_with_it(bad: str, told: str) -> None:
    after = '- tool: "search"\n  rule: "be brief"\n'
    found = read(f"# a comment\n\n{GOOD}\n{bad}\n{after}")
    assert [rule.rule for rule in found.rules.values()] == ["never use sudo", "be brief"]
    (problem,) = found.problems
    assert told in problem
    line = int(problem.split("line ")[1].split(":")[0].split(",")[0])
    assert 6 <= line <= 6 + bad.count("\n")


def test_a_file_that_is_too_long_or_no_text_is_refused_whole() -> None:
    with pytest.raises(RequestError, match="longer than"):
        read_team_file(b"#" * (LONGEST + 1), "rules.yaml")
    with pytest.raises(RequestError, match="no UTF-8"):
        read_team_file(b"- tool: \xff", "rules.yaml")
    assert "expected rules" in read("rules: {}\n").problems[0]


@pytest.mark.parametrize(
    "block",
    [
        '- tool: "t{}"\n  rule: "x"\n  when: [\n',
        "- {}\n",
        "- tool: &a{} [x, x]\n  rule: [*a{}, *a{}]\n",
        "- tool: " + "[" * 60 + "{}\n",
    ],
)
def test_reading_takes_time_in_proportion_to_the_file(block: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        given = "".join(block.replace("{}", str(number)) for number in range(size)).encode()
        return lambda: read_team_file(given, "rules.yaml")

    assert grows_at_most(12, reading, 200, 1600)


# ---------------------------------------------------------------- what it changes


async def test_what_the_file_adds_or_widens_holds(rules: RuleStore) -> None:
    await taken_in(rules, GOOD)
    wider = f"{GOOD}  priority: critical\n  when: true\n"
    assert await kinds(rules, wider) == ["changed"]
    await taken_in(rules, wider)
    rule = await only(rules, "bash")
    assert (rule.when, rule.priority) == (True, "critical")
    assert await kinds(rules, wider) == []


LESS = {
    "dropped": '- tool: "search"\n  rule: "be brief"\n',
    "narrowed": f"{GOOD}  effect: ask\n  when: true\n",
    "only reminding": f"{GOOD}  effect: remind\n",
}


@pytest.mark.parametrize("how", LESS)
async def test_what_the_file_dropped_or_narrowed_holds_on_and_is_proposed(
    rules: RuleStore, held: None, how: str
) -> None:
    await taken_in(rules, GOOD)
    before = await only(rules, "bash")
    (told,) = await taken_in(rules, LESS[how])
    assert "never use sudo" in told
    assert "`lift " in told
    assert await only(rules, "bash") == before


@pytest.mark.parametrize("how", LESS)
async def test_once_the_user_accepts_the_rule_is_as_the_file_has_it(rules: RuleStore, held: None, how: str) -> None:
    await taken_in(rules, GOOD)
    await taken_in(rules, LESS[how])
    (proposal,) = journal_here().proposals(store_key(location_of(rules.store)))
    assert await accept(rules.with_evidence(UserEvidence("typed", f"lift {proposal.code}")), proposal) is not None
    assert await kinds(rules, LESS[how]) == []


@pytest.mark.parametrize("how", LESS)
async def test_it_lifts_nothing_where_no_hook_holds_the_store_either(rules: RuleStore, how: str) -> None:
    await taken_in(rules, GOOD)
    before = await only(rules, "bash")
    (told,) = await taken_in(rules, LESS[how])
    assert f"`toolmem rules reject {before.id[:8]}`" in told
    assert await only(rules, "bash") == before


async def test_the_users_own_rules_are_none_of_the_files(rules: RuleStore) -> None:
    await rules.put_rule("bash", "never use sudo", source="user_explicit")
    before = await only(rules, "bash")
    assert await kinds(rules, LESS["dropped"]) == ["added"]
    await taken_in(rules, f"{GOOD}  priority: critical\n")
    after = await only(rules, "bash")
    assert (after.priority, after.is_users, after.tags) == ("critical", True, before.tags)


async def test_while_a_block_cannot_be_read_nothing_counts_as_dropped(rules: RuleStore) -> None:
    await taken_in(rules, GOOD)
    assert await kinds(rules, GOOD.replace('"bash"', "[")) == []
