"""What every test stands on: no network model, no configuration of the person who runs the tests."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from toolmem import ToolMemApp

AppFactory = Callable[..., ToolMemApp]
HERE = Path(__file__).parent

# A shell that starts the tests in the background has them ignore Ctrl-C, and their child processes with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start some hundred processes: without bytecode each of them would compile toolmem anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.environ.pop("COLUMNS", None)  # tables are as wide as what they say, whoever starts the tests

# Properties are about what holds, never about how fast this machine is. Where CI runs them, the same examples are tried
# each time: a red run then means a change of the code. How many there are is the profile's to say, not each test's:
# `--hypothesis-profile=thorough` (`make test-all`) tries many.
settings.register_profile(
    "quick",
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=300)
settings.load_profile("quick")

MARKED_FOLDERS = {"elasticsearch": "server", "notebooks": "notebooks", "docs": "docs"}


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of some folders bear a mark. One process has those of the server, which is started once."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])
        if folder == "elasticsearch":
            item.add_marker(pytest.mark.xdist_group("server"))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own, without the keys and files of this machine."""
    monkeypatch.chdir(tmp_path)
    keys = ("DASHSCOPE_API_KEY", "FLOW_LLM_API_KEY", "FLOW_DASHSCOPE_API_KEY", "OPENAI_API_KEY")
    for name in (*keys, "FLOW_LLM_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The list of stores that this user made is the tests' own, in the processes that they start as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _encoded_once() -> Iterator[None]:
    """The encoder's own vectors, kept for all tests of this process: most of their time went into the same few texts.

    A `PackagedEncoder` keeps them just so, for itself.
    """
    from toolmem.providers import packaged_encoder

    encode, one_at_a_time = packaged_encoder._vectors, threading.Lock()
    kept: dict[str, Any] = {}

    @wraps(encode)
    def vectors(texts: Sequence[str]) -> Any:
        import numpy as np

        with one_at_a_time:
            fresh = [text for text in dict.fromkeys(texts) if text not in kept]
            if fresh:
                kept.update(zip(fresh, encode(fresh), strict=True))
            return np.stack([kept[text] for text in texts])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packaged_encoder, "_vectors", vectors)
        yield


@pytest.fixture(autouse=True)
def _own_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks that run in this process were started by an agent, by none that somebody runs the tests with."""
    from toolmem.hosts import ancestry

    agent = ancestry.Process(2**22 + 1, "", "agent")  # an id that no process has
    monkeypatch.setattr(ancestry, "agent_of_hook", lambda: ancestry.HookAgent(agent))
    monkeypatch.setattr(ancestry, "ancestors", lambda pid=0: ())
    for mark in (*(mark for marks in ancestry.MARKS.values() for mark in marks), "COPILOT_CLI"):
        monkeypatch.delenv(mark.partition("=")[0], raising=False)


@pytest.fixture
def make_app(tmp_path: Path) -> AppFactory:
    """An app on a store in the test's folder, unpaced; keyword arguments as for ToolMemApp."""

    def make(*overrides: str, store: str = "memory.db", **given: Any) -> ToolMemApp:
        return ToolMemApp(
            overrides=[
                f"vector_store.default.params.path='{tmp_path / store}'",
                "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
                "op.summary_tool_memory_op.params.summary_sleep_interval=0",
                *overrides,
            ],
            **given,
        )

    return make


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line in this process: quick, and for tests that have no event loop."""

    def run(*arguments: str) -> Ran:
        from toolmem.cli import main

        with pytest.raises(SystemExit) as left:
            main(arguments)
        captured = capsys.readouterr()
        return Ran(int(left.value.code or 0), captured.out, captured.err)

    return run
