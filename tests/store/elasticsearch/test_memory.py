"""What a user does with `backend=elasticsearch`, and that it is the same as on a file."""

import csv
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import run

import toolmem
from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.errors import ConfigError
from toolmem.guard import Guard
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.store.copying import logged_calls
from toolmem.store.elasticsearch import ElasticsearchStore

pytestmark = pytest.mark.xdist_group("elasticsearch")


@pytest.fixture
def open_memory(server, prefix):
    """Each is what another process has."""
    opened = []

    def make():
        params = {"hosts": server.url, "index_prefix": prefix}
        settings = [f"vector_store.default.params.{name}={v}" for name, v in params.items()]
        settings.append("vector_store.default.backend=elasticsearch")
        opened.append(ToolMem(overrides=settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_same_recording_gives_the_same_report_on_both_stores(server, prefix, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    on_file = run(tmp_path / "a", "evaluate", "--limit", "300")
    url = f"{server.url}/{prefix}"
    distributed = run(tmp_path / "b", "evaluate", "--limit", "300", "--store", url)
    assert (on_file.returncode, distributed.returncode) == (0, 0), distributed.stderr
    for name in ("calls", "errors", "lines", "skips", "tools"):
        places = [tmp_path / folder / "report" / f"{name}.csv" for folder in "ab"]
        one, other = map(rows, places)
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            times = {key for key in first if "time" in key or key.endswith("_at")}
            assert {key for key in first if first[key] != second[key]} <= times
    copied = run(tmp_path, "store", "copy", url, "copy.db", "--workspace", "evaluate")
    assert copied.returncode == 0, copied.stderr
    assert "300" in copied.stdout
    told = [
        json.loads(run(tmp_path, "store", "info", "--store", place, "--json").stdout)
        for place in (url, "copy.db")
    ]
    assert told[0] == told[1] != []


def test_two_imports_at_once_keep_every_call_of_a_recording_once(server, prefix, tmp_path):
    sample = str(Path(toolmem.__file__).parent / "data" / "recording.calls.jsonl.gz")
    where = (sample, "--store", f"{server.url}/{prefix}", "--into-shared")
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda _: run(tmp_path, "import", *where), range(2)))
    assert [each.returncode for each in both] == [0, 0], both[0].stderr + both[1].stderr
    told = [re.search(r"^([\d,]+) new call", each.stdout, re.MULTILINE) for each in both]
    new = [int(each[1].replace(",", "")) for each in told]
    with ElasticsearchStore(server.url, index_prefix=prefix) as store:
        logged = [each.call.id for each in logged_calls(store, "default")]
        assert sum(new) == len(logged) == len(set(logged)) == 1176
        assert sum(each.counters.calls for each in store.records("default")) == 1176
    again = run(tmp_path, "import", *where, "--again").stdout
    assert again.startswith("0 new calls; 1,176 were there already.")


def guard_and_rules(memory, clock):
    store = memory.services.store(OpSection())
    return Guard(store, "w", clock), ToolMemoryStore(store, "w", clock)


def test_a_rule_binds_at_once_in_another_process_and_is_lifted_at_once(open_memory, clock):
    guard, _ = guard_and_rules(open_memory(), clock)
    _, rules = guard_and_rules(open_memory(), clock)
    mail = {"to": "sarah@example.com"}

    def decided():
        return guard.before("send_email", mail, conversation_id="c").action

    assert decided() == "allow"
    asked = {"tool_name": "send_email", "rule": "No", "effect": "deny"}
    rule = rules.put_rule(RuleInput(**asked, when=[{"target": "sarah"}]))
    assert decided() == "deny"
    assert rules.delete_rule("send_email", rule.id)
    assert decided() == "allow"


def test_what_was_done_before_counts_at_once_in_another_process(open_memory, clock):
    guard, rules = guard_and_rules(open_memory(), clock)
    other, _ = guard_and_rules(open_memory(), clock)
    when = [{"target": ".", "earlier": {"tool": "^read_inbox$"}}]
    asked = {"tool_name": "send_email", "rule": "No", "effect": "deny"}
    rules.put_rule(RuleInput(**asked, when=when))
    mail = {"to": "a@b.c"}
    assert other.before("send_email", mail, conversation_id="c").action == "allow"
    read = guard.before("read_inbox", {}, conversation_id="c")
    guard.after(read, {}, output="one message", failed=False)
    assert other.before("send_email", mail, conversation_id="c").action == "deny"


def test_settings_that_cannot_be_are_refused_by_name():
    with pytest.raises(ConfigError, match="vector_store.default.params.hosts: needed"):
        ToolMem(overrides=["vector_store.default.backend=elasticsearch"]).guidance(["a"])
    wrong = ["vector_store.default.params.hosts=localhost"]
    with pytest.raises(ConfigError, match="params.hosts: expected a URL with a port"):
        ToolMem(overrides=["vector_store.default.backend=elasticsearch", *wrong]).guidance(["a"])
