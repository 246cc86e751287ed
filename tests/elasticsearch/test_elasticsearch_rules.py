"""The rules' own tests, the safety cases among them, on the distributed store."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType

import pytest
from elasticsearch_nodes.server import Server

from tests.agent_over_rules import agent_over
from toolmem import AsyncToolMem, CallDenied, CallRecorder, ToolMem, ToolMemApp
from toolmem.providers.hashing import HashingEmbedder
from toolmem.rules.rule_store import RuleStore
from toolmem.session import AgentSession
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock

_SUITES = (
    "test_rules_in_prompt",
    "test_rule_store",
    "test_capture_hook",
    "test_prefetch_rules",
    "test_who_may_say_what",
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder(64)


@pytest.fixture
async def store(
    server: Server, empty_prefix: Callable[[int], str], clock: ManualClock, embedder: HashingEmbedder
) -> AsyncIterator[ElasticsearchStore]:
    made = ElasticsearchStore(
        server.url,
        clock=clock,
        embedder=embedder.identity,
        index_prefix=empty_prefix(embedder.identity.dimension),
        number_of_replicas=0,
    )
    async with made as store:
        yield store


@pytest.fixture
def rules(store: ElasticsearchStore, clock: ManualClock, embedder: HashingEmbedder) -> RuleStore:
    return RuleStore(store, "team", clock=clock, embedder=embedder)


@pytest.fixture
def tools(rules: RuleStore, store: ElasticsearchStore, clock: ManualClock, embedder: HashingEmbedder):
    return agent_over(rules)


@pytest.fixture
def overrides(server: Server, empty_prefix: Callable[[int], str]) -> list[str]:
    return [
        "vector_store.default.backend=elasticsearch",
        f"vector_store.default.params.hosts={server.url}",
        f"vector_store.default.params.index_prefix={empty_prefix(384)}",
        "vector_store.default.params.number_of_replicas=0",
    ]


async def test_a_rule_put_by_another_handle_binds_in_the_very_next_messages_of_a_session(overrides: list[str]):
    async with ToolMemApp(overrides=overrides) as app, ToolMemApp(overrides=overrides) as other:
        session = await AgentSession.start(app, workspace_id="team", tools=["shell"], count_tokens=len)
        rules = await other.rule_store("team")
        put = await rules.put_rule("shell", "never run sudo", priority="critical")
        assert "- **[critical]** `shell`: never run sudo" in session.messages("go on")[-1]["content"]
        await rules.delete_rule("shell", put.id)
        assert "sudo" not in str(session.messages())


@pytest.mark.parametrize("as_session", [True, False])
async def test_tools_are_held_on_the_loop_of_the_store_and_in_its_thread_and_in_others(
    overrides: list[str], as_session: bool
):
    """A handle belongs to one loop here: a plain tool in that loop's thread asks by a handle of its own."""
    ran: list[str] = []
    async with AsyncToolMem(overrides=overrides) as mem:
        session = await AgentSession.start(mem, tools=["shell"], count_tokens=len)
        recorder = CallRecorder(mem)
        decorate = session.tool if as_session else recorder.tool

        @decorate
        def shell(command: str) -> str:
            ran.append(command)
            return "done"

        async def shell_later(command: str) -> str:
            return f"{command} done"

        shell_later.__name__ = "shell"
        later = decorate(shell_later)
        shell("sudo ls")
        rule = await mem.rules.put("shell", "never run commands with sudo", priority="critical")
        for call in (lambda: asyncio.to_thread(shell, "sudo ls"), lambda: later("sudo ls")):
            with pytest.raises(CallDenied):
                await call()
        with pytest.raises(CallDenied):
            shell("sudo ls")
        assert await later("ls") == "ls done"
        await mem.rules.delete("shell", rule.id)
        shell("sudo ls")
        await session.close()
    assert ran == ["sudo ls", "sudo ls"]


def test_tools_are_held_by_a_synchronous_memory(overrides: list[str]):
    with ToolMem(overrides=overrides) as mem:
        mem.rules.put("shell", "never run commands with sudo", priority="critical")

        @CallRecorder(mem, on_denied="return").tool
        def shell(command: str) -> str:
            return "done"

        assert shell("sudo ls").startswith("toolmem: not run")
        assert shell("ls") == "done"
        assert [each.outcome for each in mem.decisions()] == ["not_run"]


def _suite(name: str) -> ModuleType:
    path = Path(__file__).parents[1] / "rules" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"rules_suite_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _on_any_store(test: object) -> bool:
    """Those that ask for nothing but the fixtures above, and reach no engine past the protocol."""
    if not inspect.iscoroutinefunction(test) or "rules" not in inspect.signature(test).parameters:
        return False
    marks = getattr(test, "pytestmark", [])
    given = {name.strip() for mark in marks if mark.name == "parametrize" for name in _names(mark.args[0])}
    if "damage(" in inspect.getsource(test):
        return False
    return set(inspect.signature(test).parameters) - given <= {"rules", "store", "clock", "embedder", "caplog", "tools"}


def _names(argument: object) -> list[str]:
    return argument.split(",") if isinstance(argument, str) else [str(name) for name in argument]


for _name in _SUITES:
    for _test_name, _test in vars(_suite(_name)).items():
        if _test_name.startswith("test_") and _on_any_store(_test):
            globals()[_test_name] = _test
