"""The journal where several processes change rules at once, or are killed between the store and the journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile
from toolmem.hosts.event_stores import EventStores
from toolmem.hosts.loosened import bring_up_to_date, to_tell
from toolmem.readers.weight import at_once
from toolmem.rules.rule_store import RuleStore
from toolmem.store.journal_changes import journal_here, store_key

WORK = """
import os, signal, sys
from toolmem.engine import StoreFile
from toolmem.readers.weight import at_once
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.rule_store import RuleStore
from toolmem.store.journal import Journal

path, what, name, killed = sys.argv[1:]
if killed == "yes":  # the store has it, the journal has not
    Journal.changing = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
store = StoreFile(path)
store.held = True
rules = RuleStore(store.protocol, clock=store.clock, evidence=UserEvidence("typed", what, "s1", "claude-code"))
for number in range(int(name)) if what == "many" else [name]:
    text = f"never run program {os.getpid()} {number}" if what == "many" else "never push to main"
    rule = at_once(rules.put_rule("Bash", text, id="" if what == "many" else "one", effect="deny", when=True))
    if what in ("many", "delete") and (what == "delete" or number % 2):
        at_once(rules.delete_rule("Bash", rule.id))
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "repo" / ".toolmem" / "memory.db"
    place.parent.mkdir(parents=True)
    StoreFile(place).make().close()
    return place


def start(path: Path, what: str, name: str = "one", *, killed: bool = False) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WORK, str(path), what, name, "yes" if killed else "no"]
    return subprocess.Popen(words, env=dict(os.environ))


def kept(path: Path) -> list[str]:
    rows = journal_here().rules(store_key(str(path)), "default")
    return sorted(str(json.loads(row.text)["rule"]) for row in rows)


def in_store(path: Path) -> tuple[list[str], Sequence[str]]:
    """(the rules that hold, what the user is to be told), once a hook has compared."""
    with StoreFile(path) as store:
        store.held = True
        bring_up_to_date(EventStores(store))
        rules: Any = at_once(RuleStore(store.protocol, clock=store.clock).all_rules())[0]
        return sorted(rule.rule for rule in rules), to_tell(EventStores(store)).lines


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_rule_whose_process_was_killed_before_the_journal_is_in_it_at_the_next_prompt(path: Path) -> None:
    assert start(path, "put", killed=True).wait(60) == -signal.SIGKILL
    assert kept(path) == []

    assert in_store(path) == (["never push to main"], ())
    assert kept(path) == ["never push to main"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_withdrawal_whose_process_was_killed_before_the_journal_holds_and_is_told(path: Path) -> None:
    assert start(path, "put").wait(60) == 0
    with StoreFile(path) as store:
        store.held = True
        bring_up_to_date(EventStores(store))
    assert start(path, "put", killed=True).wait(60) == -signal.SIGKILL
    put = 'rule = at_once(rules.put_rule("Bash", text'
    delete = WORK.replace(put, f'rule = at_once(rules.get_rule("Bash", name)) or {put[7:]}')
    words = [sys.executable, "-c", delete, str(path), "delete", "one", "yes"]
    assert subprocess.run(words, timeout=60, check=False).returncode == -signal.SIGKILL
    assert kept(path) == ["never push to main"]

    rules, told = in_store(path)
    assert rules == []
    assert len(told) == 1
    assert "“never push to main”" in told[0]
    assert kept(path) == []


def test_processes_that_change_rules_at_once_leave_a_journal_that_is_as_the_store(path: Path) -> None:
    running = [start(path, "many", "12") for _ in range(3)]
    assert [each.wait(120) for each in running] == [0, 0, 0]

    rules, told = in_store(path)
    assert len(rules) == 18
    assert kept(path) == rules
    assert sum("holds no longer" in line for line in told) == 5  # and how many more
    assert "(+13)" in told
    assert journal_here().is_whole()
