"""Rules that bind less, are to bind less or are just gone: what holds, what is told, and the words that answer.

The command line is a process of its own, which no person answers for.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from toolmem.engine import StoreFile
from toolmem.hosts.hook_process import answered
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.weight import at_once
from toolmem.rules.evidence import UserEvidence, wanted_by_user
from toolmem.rules.rule_store import RuleStore
from toolmem.store.journal_changes import code_of


class Agent:
    """Claude Code in a project whose hooks are installed, as far as a hook sees it."""

    def __init__(self, folder: Path) -> None:
        self.repo = folder / "repo"
        self.store = self.repo / ".toolmem" / "memory.db"
        self.session = "s1"
        self._number = 0
        (self.repo / ".git").mkdir(parents=True)
        settings = folder / "home" / ".claude" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text("{}")
        keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))
        StoreFile(self.store).close()
        with StoreFile(self.store) as store:
            at_once(RuleStore(store.protocol, clock=store.clock).put_rule("Bash", "never use telnet"))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line, which is nobody's terminal."""
        given = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
        return subprocess.run(
            [sys.executable, "-m", "toolmem", *words],
            cwd=self.repo,
            env=given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def hook(self, event: str, **payload: Any) -> dict[str, Any]:
        self._number += 1
        given = {"hook_event_name": event, "session_id": self.session, "cwd": str(self.repo)}
        given |= {"prompt_id": f"p{self._number}", "tool_use_id": f"toolu_{self._number}", **payload}
        told = io.BytesIO(json.dumps(given).encode())
        answer = answered(["claude-code"], told, {"CLAUDE_PROJECT_DIR": str(self.repo)})
        read: dict[str, Any] = json.loads(answer) if answer else {}
        return read

    def says(self, prompt: str, **payload: str) -> str:
        """What the user is told."""
        return str(self.hook("UserPromptSubmit", prompt=prompt, **payload).get("systemMessage", ""))

    def begins(self) -> dict[str, Any]:
        return self.hook("SessionStart", source="startup")

    def decides(self, command: str) -> str:
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"toolu_of_{self._number}"}
        decided = self.hook("PreToolUse", **call).get("hookSpecificOutput", {}).get("permissionDecision", "allow")
        if decided != "deny":
            self.hook("PostToolUse", **call, tool_response={"stdout": "done", "stderr": "", "interrupted": False})
        return str(decided)

    def stops(self, tool: str, given: dict[str, Any]) -> bool:
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_of_{self._number}"}
        decided = self.hook("PreToolUse", **call).get("hookSpecificOutput", {}).get("permissionDecision")
        if decided != "deny":
            self.hook("PostToolUse", **call, tool_response={"stdout": "done", "stderr": "", "interrupted": False})
        return decided == "deny"

    def push(self) -> str:
        return self.decides("git push origin main")

    def sql(self, *statements: str) -> None:
        """By the library that holds the store open: another one in this process would not see its locks."""
        db = apsw.Connection(str(self.store))
        for statement in statements:
            db.execute(statement)
        db.close()

    def rules(self) -> list[ToolMemoryRule]:
        with StoreFile(self.store) as store:
            return at_once(RuleStore(store.protocol, clock=store.clock).all_rules(inactive=True))[0]

    def rule(self) -> ToolMemoryRule:
        return next(each for each in self.rules() if "push" in each.rule)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """With a rule of its user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Agent(tmp_path)
    assert "Never push to main" in made.says("Never push to main.")
    assert made.push() == "deny"
    return made


def code_in(text: str, word: str = "lift") -> str:
    found = re.search(rf"{word} ([2-9a-z]{{4}})", text)
    assert found, text
    return found[1]


RULES = "namespace = 'tool-@shell' AND key LIKE 'rule/%'"
LOST: dict[str, tuple[str, ...]] = {
    "the row is deleted": (f"DELETE FROM records WHERE {RULES}",),
    "all rows are": ("DELETE FROM records",),
    "it is withdrawn": (f"UPDATE records SET value = json_set(value, '$.status', 'withdrawn') WHERE {RULES}",),
    "it is a tombstone": (
        f"UPDATE records SET value = json_object('deleted', json('true'), 'sentence', '') WHERE {RULES}",
    ),
    "it is a reminder": (f"UPDATE records SET value = json_set(value, '$.effect', 'remind') WHERE {RULES}",),
    "its condition is narrower": (
        f"UPDATE records SET value = json_set(value, '$.when', json('{{\"required\": [\"no\"]}}')) WHERE {RULES}",
    ),
    "it has expired": (
        f"UPDATE records SET value = json_set(value, '$.expires_at', '2020-01-01T00:00:00Z') WHERE {RULES}",
    ),
    "its text is another": (f"UPDATE records SET value = json_set(value, '$.rule', 'push') WHERE {RULES}",),
    "it is damaged": (f"UPDATE records SET value = 'x' WHERE {RULES}",),
    "its namespace is another": (f"UPDATE records SET namespace = 'tool-nothing' WHERE {RULES}",),
}


@pytest.mark.parametrize("how", LOST)
def test_a_rule_that_is_just_gone_holds_on_and_is_told_once(agent: Agent, how: str) -> None:
    agent.sql(*LOST[how])

    assert agent.push() == "deny"
    begun = agent.begins()
    assert "Never push to main" in begun["hookSpecificOutput"]["additionalContext"]
    told = agent.says("And what about the tests?")
    assert "“Never push to main” (" in told
    assert "`keep them` or `let them go`" in told
    assert "Never push" not in agent.says("Go on.")
    assert agent.push() == "deny"
    assert agent.rule().status == "active"


@pytest.mark.parametrize("how", LOST)
def test_keep_them_puts_what_is_gone_back(agent: Agent, how: str) -> None:
    agent.sql(*LOST[how])

    assert "put back" in agent.says("keep them")
    assert agent.rule().status == "active"
    assert agent.push() == "deny"


@pytest.mark.parametrize("how", [how for how in LOST if how != "its text is another"])  # it stops calls as before
def test_let_them_go_lets_it_go_and_that_is_told(agent: Agent, how: str) -> None:
    agent.sql(*LOST[how])

    assert "hold no longer" in agent.says("Let them go!")
    assert agent.push() == "allow"
    told = agent.says("Go on.")
    assert "you typed “Let them go!”" in told
    assert "Restored" in agent.says(f"restore {code_in(told, 'restore')}")
    assert agent.push() == "deny"


def test_lifting_by_a_sentence_is_told_at_the_next_prompt_with_the_word_that_restores_it(agent: Agent) -> None:
    agent.says("You can push to main again.")
    assert agent.push() == "allow"

    agent.session = "s2"
    begun = agent.begins()
    assert "you typed “You can push to main again.”" in begun["systemMessage"]
    told = agent.says("Hello.")
    assert "“Never push to main” (said" in told
    assert "you typed “You can push to main again.”" in told
    assert "restore" not in agent.says("Go on.")
    assert "已恢复" in agent.says(f"恢复 {code_in(told, 'restore')}")
    assert agent.push() == "deny"


DELETED = {
    "rules delete": lambda agent: agent.run("rules", "delete", agent.rule().id),
    "rules reject": lambda agent: agent.run("rules", "reject", agent.rule().id[:8]),
    "a put": lambda agent: agent.run("rules", "add", "@shell", "whatever", "--id", agent.rule().id),
}


@pytest.mark.parametrize("how", DELETED)
def test_a_command_that_nobody_answers_for_only_proposes(agent: Agent, how: str) -> None:
    ran = DELETED[how](agent)

    assert ran.returncode == 1, ran.stdout + ran.stderr
    code = code_in(ran.stderr + ran.stdout)
    assert agent.push() == "deny"
    assert agent.rule().status == "active"

    for nothing in ("yes", "ok, lift it", "是的", f"no, do not lift {code}"):
        told = agent.says(nothing)
        assert agent.push() == "deny"
        assert nothing != "yes" or f"lift {code}" in told
    assert "Accepted" in agent.says(f"Lift {code}.")
    assert agent.push() == "allow"
    told = agent.says("Go on.")
    assert f"restore {code}" in told
    assert "Restored" in agent.says(f"restore {code}")
    assert agent.push() == "deny"


def test_three_proposals_wait_at_most_and_one_a_rule(agent: Agent) -> None:
    for tool in ("curl", "wget", "sudo", "ssh"):
        agent.says(f"Never use {tool}.")
    rules = json.loads(agent.run("rules", "list", "--json").stdout)
    ids = [
        each["id"] for each in rules if each["rule"].lower().startswith("never use") and "telnet" not in each["rule"]
    ]
    assert len(ids) == 4

    tried = [agent.run("rules", "delete", each) for each in (*ids, ids[0])]
    assert [each.returncode for each in tried] == [1] * 5
    codes = [code_in(each.stderr) for each in (*tried[:3], tried[4])]
    assert len(set(codes)) == 3
    assert codes[3] == codes[0]
    assert "not proposed" in tried[3].stderr
    assert agent.decides("ssh host") == "deny"


def test_the_store_of_a_project_that_was_moved_takes_its_journal_along(agent: Agent, tmp_path: Path) -> None:
    agent.repo.rename(tmp_path / "moved")
    agent.repo = tmp_path / "moved"
    agent.store = agent.repo / ".toolmem" / "memory.db"
    agent.run("store", "trust", str(agent.store))
    agent.sql(LOST["the row is deleted"][0])

    told = agent.says("Hello.")
    assert f"the store that was at {tmp_path / 'repo' / '.toolmem' / 'memory.db'} is here now" in told
    assert agent.push() == "deny"
    assert "is here now" not in agent.says("Go on.")


def test_an_order_of_withdrawals_with_evidence_from_elsewhere_is_believed_and_told(agent: Agent) -> None:
    evidence = json.dumps({"kind": "terminal", "words": "y", "session": "", "host": ""})
    agent.sql(
        f"UPDATE records SET value = json_set(json_set(value, '$.status', 'withdrawn'), '$.evidence', "
        f"json('{evidence}')) WHERE {RULES}"
    )

    assert agent.push() == "allow"
    assert "answered in a terminal" in agent.says("Hello.")


def test_looking_makes_and_writes_nothing(agent: Agent, tmp_path: Path) -> None:
    def seen() -> Iterable[tuple[str, int]]:
        with closing(sqlite3.connect(tmp_path / "state" / "toolmem" / "journal.db")) as db, db:
            return [(line, 1) for line in db.iterdump()]

    known = seen()
    for words in (["rules", "list"], ["rules", "prompt"], ["hook", "status", "claude-code"], ["store", "info"]):
        agent.run(*words)
    agent.push()
    assert seen() == known


def delete_all(agent: Agent) -> dict[str, Any]:
    from toolmem import ToolMem

    with ToolMem(agent.store) as mem:
        return mem.delete_workspace(confirm="default").metadata


def test_a_workspace_that_is_deleted_lifts_no_rule_unless_its_user_wants_that(agent: Agent) -> None:
    assert delete_all(agent)["rules_hold_on"] == 2
    assert agent.push() == "deny"
    agent.says("keep them")

    with wanted_by_user(UserEvidence("terminal", "y")):
        assert "rules_hold_on" not in delete_all(agent)
    assert agent.push() == "allow"
    assert "the rules of a whole store hold no longer: it was answered in a terminal" in agent.says("Hello.")


def test_a_rule_that_was_deleted_is_kept_and_told_when_it_is_said_again(agent: Agent) -> None:
    with StoreFile(agent.store) as store:
        rules = RuleStore(store.protocol, clock=store.clock, evidence=UserEvidence("terminal", "y"))
        assert at_once(rules.delete_rule("@shell", agent.rule().id))
    assert agent.push() == "allow"

    agent.session = "s2"
    told = agent.says("Never push to main.")
    assert "Kept as a rule: Never push to main" in told
    assert "stops `git push origin main`" in told  # the call that was tried, and no more than that is claimed
    assert agent.push() == "deny"


def test_a_code_stands_for_one_rule_and_is_no_word(agent: Agent) -> None:
    codes = [code_of(f"rule/{number}") for number in range(2000)]
    assert all(re.fullmatch(r"[2-9a-hjkmnp-z]{4}", each) for each in codes)
    assert all(re.search(r"\d", each) for each in codes)
    assert code_of("rule/1") == code_of("rule/1") != code_of("rule/1", 1)
    assert agent.says("lift this") == ""
    assert agent.push() == "deny"


# ---------------------------------------------------------------- a demand that is about several classes of tools

SEVERAL = "Never touch /srv/data."
TOUCHES = {
    "Bash": {"command": "rm /srv/data/x"},
    "Write": {"file_path": "/srv/data/x", "content": "x"},
    "Read": {"file_path": "/srv/data/x"},
}
LIFTED_ALL = {
    "undo": lambda agent: agent.says("undo"),
    "a sentence": lambda agent: agent.says("You may touch /srv/data again."),
    "rules reject": lambda agent: [
        agent.says(f"lift {code_in(agent.run('rules', 'reject', each.id).stderr)}")
        for each in agent.rules()[:-1]
        if "/srv/data" in each.rule and each.status == "active" and each.tool_name == "@shell"
    ],
}


def stopped_tools(agent: Agent) -> list[str]:
    return [name for name, given in TOUCHES.items() if agent.stops(name, given)]


@pytest.mark.parametrize("how", LIFTED_ALL)
def test_restoring_brings_a_demand_back_for_every_class_that_it_is_about(agent: Agent, how: str) -> None:
    agent.says(SEVERAL)
    before = stopped_tools(agent)
    assert len(before) > 1
    LIFTED_ALL[how](agent)
    assert stopped_tools(agent) == []

    told = agent.says("Go on.")
    assert told.count("holds no longer") == 1, told
    assert "Restored" in agent.says(f"restore {code_in(told, 'restore')}")
    assert stopped_tools(agent) == before


def test_restoring_one_demand_brings_no_other_back_that_was_lifted_by_the_same_words(agent: Agent) -> None:
    agent.says("Never use wget. Never use curl.")
    told = agent.says("undo") + agent.says("Go on.")
    code = code_in(told[told.index("Never use curl”", told.index("you typed") - 60) :], "restore")
    restored = agent.says(f"restore {code}")
    assert agent.decides("curl x") != agent.decides("wget x")
    assert ("curl" in restored) == (agent.decides("curl x") == "deny")


# ---------------------------------------------------------------- only what is true now is told


def test_what_was_taken_back_and_said_again_is_told_as_kept_alone(agent: Agent) -> None:
    agent.says("You can push to main again.")

    told = agent.says("Never push to main.")
    assert "Kept as a rule: Never push to main" in told
    assert "holds no longer" not in told
    assert "holds no longer" not in agent.says("Hello.")
    assert agent.push() == "deny"


def test_what_was_lifted_by_its_code_and_said_again_is_told_as_kept_alone(agent: Agent) -> None:
    code = code_in(agent.run("rules", "delete", agent.rule().id).stderr)
    assert "Accepted" in agent.says(f"lift {code}")

    told = agent.says("Never push to main.")
    assert "Kept as a rule: Never push to main" in told
    assert "holds no longer" not in told
    assert "holds no longer" not in agent.says("Hello.")


def test_what_was_taken_back_and_said_again_twice_is_told_once_and_as_it_is_now(agent: Agent) -> None:
    agent.says("You can push to main again.")
    agent.says("Never push to main.")
    agent.says("You can push to main again.")

    assert agent.says("Hello.").count("holds no longer") == 1


def test_what_is_restored_is_told_as_restored_alone(agent: Agent) -> None:
    agent.says("You can push to main again.")
    agent.session = "s2"
    code = code_in(agent.begins()["systemMessage"], "restore")

    told = agent.says(f"restore {code}")
    assert "Restored" in told
    assert "holds no longer" not in told
    agent.session = "s3"
    assert "holds no longer" not in agent.begins().get("systemMessage", "")


def test_what_is_put_back_is_told_as_put_back_alone(agent: Agent) -> None:
    agent.sql(LOST["the row is deleted"][0])

    told = agent.says("keep them")
    assert "put back" in told
    assert "is gone from its store" not in told


def test_what_is_gone_and_said_again_is_told_as_kept_alone(agent: Agent) -> None:
    agent.sql(LOST["the row is deleted"][0])

    told = agent.says("Never push to main.")
    assert "Kept as a rule: Never push to main" in told
    assert "is gone from its store" not in told


def test_a_demand_that_was_shortened_is_told_as_such_while_it_is(agent: Agent) -> None:
    agent.says("Never use curl.")
    agent.says("just this time")
    assert "“Never use curl” (said" in agent.says("Hello.")
    agent.says("Never use curl.")
    assert "Never use curl" not in agent.says("Hello.")


# ---------------------------------------------------------------- a sentence with a colon


@pytest.mark.parametrize("said", ["Note: {}", "One thing: {}", "From now on: {}", "For the record: {}"])
def test_a_sentence_that_a_person_leads_in_with_a_colon_takes_back(agent: Agent, said: str) -> None:
    assert "still holds" not in agent.says(said.format("You may push to main again."))
    assert agent.push() == "allow"


@pytest.mark.parametrize("made", ["Stop hook feedback: {}", "Subject: {}", "Background task completed: {}"])
def test_what_a_name_introduces_takes_nothing_back(agent: Agent, made: str) -> None:
    agent.says(made.format("You may push to main again."))
    assert agent.push() == "deny"
