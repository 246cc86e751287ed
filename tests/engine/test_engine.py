"""The engine: what a hook runs answers and keeps the same as the operations, and loads next to nothing."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolmem import ToolCall, ToolCallResult, ToolMem
from toolmem.engine import GUIDANCE_TOKENS, KEEP_CALLS, StoreFile, after, before, prompt_for, user_said
from toolmem.engine.store_file import MachineClock
from toolmem.errors import RecordError, RequestError, StoreClosed, StoreUnavailable
from toolmem.formats.call_records import RecordNotes, read_fields, read_record
from toolmem.light_models import PendingCall
from toolmem.ops import UpdateVectorStoreOp
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.readers.weight import MOST_AT_ONCE, at_once
from toolmem.rules.pinning import CAPS
from toolmem.sample import load_records

SENTENCES = Path(__file__).parents[2] / "benchmarks" / "instruction_sentences.csv"
TOOLS = ["search", "send_email", "Shell", "delete_file", "转账"]
COUNT = QwenTokenizer().count
SECRET = "sk-proj-9fK2mQ7xLw3RtY8uVb4ZcN6dHs1PeGaJ"
_workspaces = map("w{}".format, count())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engine") / "memory.db"


@pytest.fixture(scope="module")
def memory(path: Path) -> Iterator[ToolMem]:
    with ToolMem(path) as mem:
        yield mem


@pytest.fixture(scope="module")
def sample_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample") / "memory.db"


@pytest.fixture(scope="module")
def sample(sample_path: Path) -> Iterator[ToolMem]:
    """Some of the sample's calls."""
    with ToolMem(sample_path) as mem:
        mem.add(load_records()[:300])
        mem.summarize([tool.tool_name for tool in mem.tools()])
        mem.rules.put("search", "never search for names", priority="critical")
        yield mem


# ---------------------------------------------------------------- what is loaded

HEAVY = {
    *("pydantic", "numpy", "yaml", "omegaconf", "typer", "click", "rich", "fastapi", "httpx", "aiohttp", "pandas"),
    *("asyncio", "mcp", "jsonschema_rs", "importlib.resources"),
}
CALLS = {
    "prompt_for": "assert 'never email' in prompt_for(store, ['search', 'send_email'])",
    "user_said": "assert user_said(store, '永远不要删除文件. Never run sudo.', tools=['shell', 'delete_file']).rules",
    "before": "assert not before(store, {'tool_name': 'shell', 'input': {'x': 'ls'}}, conversation_id='c').stops",
    "user_spoke": "user_spoke(store, 'c')",
    "after": f"assert after(store, {{'tool_name': 'search', 'input': {{'token': {SECRET!r}}}, 'output': 'ok'}}).stored",
}


@pytest.mark.parametrize("function", CALLS)
def test_a_hook_loads_no_model_library_no_yaml_and_no_event_loop(function: str, tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.add([{"tool_name": "search", "input": {"q": "rain"}, "output": "[]"}])
        mem.summarize("search")
        mem.rules.put("send_email", "never email Sarah", priority="critical")
    script = f"""
import sys
from toolmem.engine import StoreFile, after, before, prompt_for, user_said, user_spoke
with StoreFile("memory.db") as store:
    {CALLS[function]}
print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    tried = {"jsonschema_rs"} if function == "user_said" else set()  # what a demand stops is tried on a call
    assert HEAVY & set(run.stdout.split()) == tried


def test_only_a_rule_that_is_checked_on_the_called_tool_loads_the_checker_of_conditions(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        rule = mem.rules.put("send_email", "never email Sarah at sarah@example.com", priority="critical")
        assert rule.effect == "deny"
    script = """
import sys
from toolmem.engine import StoreFile, before
with StoreFile("memory.db") as store:
    assert not before(store, {"tool_name": "search", "input": {"q": "sarah@example.com"}}).stops
    assert "jsonschema_rs" not in sys.modules
    assert before(store, {"tool_name": "send_email", "input": {"to": "sarah@example.com"}}).stops
    assert "jsonschema_rs" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_importing_toolmem_loads_neither_typing_nor_regular_expressions() -> None:
    script = f"import sys; sys.path = {sys.path}; import toolmem; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "toolmem" in loaded
    assert not {"typing", "re", "importlib.abc"} & loaded


# ---------------------------------------------------------------- the prompt

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)
put = st.fixed_dictionaries(
    {"tool_name": st.sampled_from([*TOOLS, "SHELL", "__unscoped__"]), "rule": words.filter(lambda text: text.strip())},
    optional={
        "priority": st.sampled_from(["critical", "high", "normal"]),
        "source": st.sampled_from(["user_explicit", "post_turn", "programmatic"]),
        "status": st.sampled_from(["active", "proposed", "withdrawn"]),
        "said": st.fixed_dictionaries({"by": st.sampled_from(["user", "agent", "program"])}),
    },
)


@settings(max_examples=15)
@given(st.lists(put, max_size=12), st.lists(st.sampled_from([*TOOLS, "search"]), max_size=4))
def test_the_prompt_is_that_of_toolmem_byte_for_byte(
    memory: ToolMem, path: Path, rules: list[dict[str, Any]], tools: list[str]
) -> None:
    workspace = next(_workspaces)
    for rule in rules:
        try:
            memory.rules.put(**rule, workspace_id=workspace)
        except RequestError:
            continue
    with StoreFile(path) as store:
        told = prompt_for(store, tools, workspace_id=workspace, base_prompt="You help.", count=COUNT)
    assert told.encode() == memory.prompt(tools=tools, base_prompt="You help.", workspace_id=workspace).encode()


@pytest.mark.parametrize("budget", [0, 40, 150, 400, 3000])
def test_guidance_of_the_sample_is_fitted_as_toolmem_fits_it(sample: ToolMem, sample_path: Path, budget: int) -> None:
    tools = [tool.tool_name for tool in sample.tools()]
    with StoreFile(sample_path) as store:
        told = prompt_for(store, tools, guidance_tokens=budget, count=COUNT)
        assert told == sample.prompt(tools=tools, guidance_tokens=budget)
        assert (len(told) > 300) == (budget >= 150)
        assert prompt_for(store, [*tools, tools[0]], guidance_tokens=budget, count=COUNT) == told


def test_tokens_are_estimated_where_nobody_counts_them(sample: ToolMem, sample_path: Path) -> None:
    with StoreFile(sample_path) as store:
        tools = [sample.tools()[0].tool_name]
        told = prompt_for(store, tools, guidance_tokens=100_000)
        assert told == sample.prompt(tools=tools, guidance_tokens=100_000)
        assert "### " in told


def test_a_damaged_rule_hides_no_other_and_damaged_guidance_no_rule(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.add([{"tool_name": "search", "input": {"q": "rain"}, "output": "[]"}])
        mem.summarize("search")
        mem.rules.put("search", "never search at night", priority="critical")
        broken = mem.rules.put("search", "never search by day", priority="critical")
        with apsw.Connection(str(tmp_path / "memory.db")) as db:
            db.execute("UPDATE records SET value = '{\"id\":' WHERE key = ?", ("rule/" + broken.id,))
            db.execute("UPDATE guidance SET value = 'no JSON'")
        with StoreFile(tmp_path / "memory.db") as store:
            told = prompt_for(store, ["search"])
        assert "at night" in told
        assert "by day" not in told
    with ToolMem(tmp_path / "memory.db") as mem:  # which had the guidance in memory
        assert told == mem.prompt(tools=["search"])


def test_what_a_hook_is_not_told_is_as_in_the_default_configuration(memory: ToolMem) -> None:
    settings = memory.app.settings
    assert settings.guidance_tokens == GUIDANCE_TOKENS
    assert (settings.rules.max_in_prompt, settings.rules.max_characters, settings.rules.max_critical_characters) == CAPS
    assert memory.app.keep_calls == KEEP_CALLS


def test_the_prompt_is_chinese_where_the_configuration_says_so(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db", overrides=["language=zh"]) as mem:
        mem.rules.put("search", "never search at night", priority="critical")
        with StoreFile(tmp_path / "memory.db") as store:
            assert prompt_for(store, ["search"], language="zh") == mem.prompt(tools=["search"])
            assert prompt_for(store, ["search"], language="en") == prompt_for(store, ["search"])


# ---------------------------------------------------------------- what the user said


def spoken() -> list[str]:
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        return [row["message"] for row in csv.DictReader(file)][::9]


def test_what_the_user_said_becomes_the_same_rules_as_by_the_operation(memory: ToolMem, tmp_path: Path) -> None:
    with StoreFile(tmp_path / "hook.db") as store:
        heard = 0
        for number, message in enumerate(spoken()):
            workspace = next(_workspaces)
            given = {"tools": TOOLS, "session_id": f"s{number}", "workspace_id": workspace}
            wanted = memory.capture_rules(message, **given)
            captured = user_said(store, message, **given)
            assert [_timeless(rule) for rule in captured.rules] == [_timeless(rule) for rule in wanted.rules]
            assert [(each.tool_name, each.rule) for each in captured.session] == [
                (each["tool_name"], each["rule"]) for each in wanted.session
            ]
            heard += len(captured.rules)
        assert heard > 10


def _timeless(rule: Any) -> dict[str, Any]:
    told = rule.model_dump(mode="json", exclude={"created_at", "updated_at"})
    told["said"].pop("time")
    return dict(told)


def test_a_rule_that_a_hook_kept_binds_in_an_open_toolmem_and_is_found_by_its_words(
    memory: ToolMem, path: Path
) -> None:
    workspace = next(_workspaces)
    given: dict[str, Any] = {"tools": ["send_email"], "session_id": "s", "turn": 1, "workspace_id": workspace}
    with StoreFile(path) as store:
        (rule,) = user_said(store, "Never email Sarah at sarah@example.com.", **given).rules
    assert "- **[critical]** Never email Sarah at sarah@example.com" in memory.prompt(workspace_id=workspace)
    found = memory.recall("sarah", namespace="tool-send_email", workspace_id=workspace)
    assert [entry.id for entry in found] == [rule.id]
    assert memory.rules.delete("send_email", rule.id, workspace_id=workspace)
    with StoreFile(path) as store:
        again = user_said(store, "Never email Sarah at sarah@example.com.", **given)
    assert not again.rules
    assert [draft.rule for draft in again.deleted] == [rule.rule]


def test_a_hook_withdraws_what_the_user_takes_back_also_for_an_open_toolmem(memory: ToolMem, path: Path) -> None:
    given: dict[str, Any] = {"tools": ["send_email"], "session_id": "s", "workspace_id": next(_workspaces)}
    memory.capture_rules("Never email Sarah.", **given)
    with StoreFile(path) as store:
        captured = user_said(store, "You may email Sarah again.", turn=2, **given)
    assert [(rule.rule, rule.status) for rule in captured.withdrawn] == [("Never email Sarah", "withdrawn")]
    assert memory.prompt(workspace_id=given["workspace_id"]) == ""
    memory.capture_rules("以后不要给 Bob 发邮件。", **given)
    answer = memory.capture_rules("以后可以给 Bob 发邮件了", **given)
    assert [rule.rule for rule in answer.withdrawn] == ["以后不要给 Bob 发邮件"]
    assert "已撤回" in answer.notes[0]


def test_capture_that_the_environment_switches_off_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "0")
    with StoreFile(tmp_path / "memory.db") as store:
        assert not user_said(store, "never run sudo", tools=["shell"]).rules
        assert prompt_for(store) == ""


def test_hooks_that_hear_the_same_at_once_keep_one_rule(path: Path, memory: ToolMem) -> None:
    workspace = next(_workspaces)

    def hook(number: int) -> list[str]:
        with StoreFile(path, busy_timeout=30) as store:
            captured = user_said(
                store, "never run sudo", tools=["shell"], session_id=str(number), workspace_id=workspace
            )
            assert not captured.failures
            return [rule.id for rule in captured.rules]

    with ThreadPoolExecutor(4) as pool:
        ids = {each for found in pool.map(hook, range(8)) for each in found}
    assert [rule.id for rule in memory.rules.list("shell", workspace_id=workspace)] == list(ids)


async def test_a_host_may_call_the_engine_inside_its_own_event_loop(tmp_path: Path) -> None:
    heavy = {"tool_name": "search", "input": list(range(2 * MOST_AT_ONCE)), "output": f"token={SECRET}"}
    with StoreFile(tmp_path / "memory.db") as store:
        assert after(store, heavy).stored == 1


# ---------------------------------------------------------------- a recorded call

RECORDS = [
    {"tool_name": "search", "input": {"q": "rain"}, "output": "[]"},
    {
        "tool_name": "search",
        "input": {"q": "sun", "api_key": SECRET},
        "output": f"{SECRET} is no key",
        "success": False,
    },
    {"tool_name": "search", "input": "text", "output": "ok", "id": "a-1", "success": True, "time_cost": 1.5},
    {
        "tool_name": "search",
        "input": [1, {"x": None}],
        "token_cost": 12,
        "output": "",
        "session_id": "s",
        "context": "why",
    },
    {
        "tool_name": "转账",
        "input": {},
        "output": "完成",
        "create_time": "2026-01-31T12:00:00+08:00",
        "metadata": {"a": 1},
    },
]


def test_a_call_that_waits_for_its_judge_has_the_fields_and_defaults_of_any_call() -> None:
    given = read_fields(RECORDS[2], 0, clock=MachineClock(), notes=RecordNotes())
    waiting, call = PendingCall(**given), ToolCallResult(**given)
    assert {name: getattr(call, name) for name in PendingCall.__slots__} == asdict(waiting)
    assert set(ToolCallResult.model_fields) - set(PendingCall.__slots__) == {"seq", "is_summarized"}
    assert (waiting.failed, call.failed) == (False, False)


@pytest.mark.parametrize("record", RECORDS)
def test_a_call_is_kept_as_the_flow_keeps_one_that_is_judged_later(record: dict[str, Any], tmp_path: Path) -> None:
    record = {"create_time": "2026-01-31T12:00:00Z", **record}
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    with ToolMem(one) as mem:  # which makes the key of the masks
        mem.add([{"tool_name": "search", "input": {"password": SECRET}, "output": "1"}])
    shutil.copy(one, other)
    with ToolMem(one) as mem:
        call = read_record(record, 0, clock=mem.app.clock, notes=RecordNotes())
        kept = {"workspace_id": "default", "judged_calls": [(0, call)], "keep_calls": 100}
        mem.app.call(mem.app.run_detailed(UpdateVectorStoreOp(), **kept))
    with StoreFile(other) as store:
        assert after(store, record).stored == 1
    assert _rows(one) == _rows(other)
    assert SECRET not in str(_rows(other))


def _rows(path: Path) -> list[Any]:
    """All that the store keeps of calls, but ids and times that each store makes itself."""
    with apsw.Connection(str(path)) as db:
        counters = "calls, successes, failures, judged, score_sum, time_calls, time_sum, token_calls, token_sum, since"
        return [
            *db.execute(
                "SELECT success, execution_failed, score, time_cost, token_cost, judge, place, conversation, payload "
                "FROM calls JOIN call_log USING (key, place) ORDER BY key"
            ),
            *db.execute(
                f"SELECT name, version, first_seq, last_seq, covered, unjudged, {counters} FROM tools ORDER BY name"
            ),
            *db.execute("SELECT digest FROM call_ids ORDER BY digest"),
        ]


def test_a_call_with_a_known_id_is_not_kept_twice_and_is_judged_like_any_other(tmp_path: Path) -> None:
    call = {"tool_name": "search", "input": {"q": "rain"}, "output": "Error: no such index", "id": "1"}
    with StoreFile(tmp_path / "memory.db") as store:
        assert after(store, call).stored == 1
        assert after(store, call).duplicates == (0,)
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.add([{"tool_name": "search", "input": {"q": "sun"}, "output": "[1]"}])
        (memory,) = mem.retrieve("search", include_calls=True)
        assert [kept.evaluation_status for kept in memory.tool_call_results] == ["ok", "ok"]
        assert memory.tool_call_results[0].execution_failed


def test_what_is_no_call_is_refused_and_named(tmp_path: Path) -> None:
    with StoreFile(tmp_path / "memory.db") as store:
        with pytest.raises(RecordError, match="tool_name: required"):
            after(store, {"input": {}})
        with pytest.raises(RequestError, match="keep"):
            after(store, RECORDS[0], keep=0)
        with pytest.raises(RequestError, match="workspace"):
            after(store, RECORDS[0], workspace_id="")
    with pytest.raises(StoreClosed):
        after(store, RECORDS[0])


def test_a_store_that_is_taken_away_acknowledges_nothing(tmp_path: Path) -> None:
    with StoreFile(tmp_path / "memory.db") as store:
        after(store, RECORDS[0])
        (tmp_path / "memory.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreUnavailable, match="moved"):
            after(store, RECORDS[0])
        with pytest.raises(StoreUnavailable, match="moved"):
            prompt_for(store)


def test_what_waits_for_an_event_loop_is_refused() -> None:
    class Waits:
        def __await__(self) -> Iterator[None]:
            yield

    async def work() -> None:
        await Waits()

    with pytest.raises(RuntimeError, match="event loop"):
        at_once(work())


MORE = {"success": True, "time_cost": 0.5, "metadata": {"a": None}, "context": "asked", "id": "c1"}
GIVEN = ToolCall("search", {"q": "rain", "limit": None}, output="[]", **MORE)


@pytest.mark.parametrize("call", [GIVEN, read_record(GIVEN, 0, clock=MachineClock(), notes=RecordNotes())])
def test_a_call_made_in_python_is_kept_as_add_keeps_it(call: Any, tmp_path: Path) -> None:
    kept = []
    for name in ("engine.db", "add.db"):
        with ToolMem(tmp_path / name) as mem:
            mem.add([call] if name == "add.db" else [])
            if name == "engine.db":
                with StoreFile(tmp_path / name) as store:
                    assert after(store, call).stored == 1
                mem.retry_evaluations()
            kept += mem.calls(["search"]).records()
    first, second = (call.model_dump(exclude={"create_time"}) for call in kept)
    assert first == second


@pytest.mark.parametrize("message", [5, None, b"never run sudo", ["never"]])
def test_a_message_that_is_no_text_is_refused(message: Any, tmp_path: Path) -> None:
    with StoreFile(tmp_path / "memory.db") as store:
        with pytest.raises(RequestError, match="message: expected text, got") as refused:
            user_said(store, message)
        assert refused.value.field == "message"


@pytest.mark.parametrize(
    "written", [json.dumps, lambda each: json.dumps(json.dumps(each)), lambda each: json.dumps([each])]
)
def test_arguments_that_are_written_as_text_are_held_against_the_rules(tmp_path, written):
    with StoreFile(tmp_path / "memory.db") as store:
        user_said(store, "Never run rm -rf.", tools=["Bash"])
        call = {"tool_name": "Bash", "input": written({"command": "rm -rf build"})}
        assert before(store, call).action == "deny"
        assert before(store, {**call, "input": written({"command": "ls build"})}).action == "allow"
