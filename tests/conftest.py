"""What all tests share. Nothing that a test does reaches the user's own files."""

import os
from datetime import UTC, datetime

import pytest
from console_site.chromium import Missing, open_chromium

from toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.rules.store import ToolMemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import TestClock
from toolmem.testing.scripted import ScriptedJudge


def pytest_addoption(parser):
    parser.addoption(
        "--store",
        metavar="MODULE:FACTORY",
        help="what tests/store tries instead: called with a path, answers a store",
    )


@pytest.hookimpl(trylast=True)  # after they were shuffled
def pytest_collection_modifyitems(items):
    """The longest group of tests begins first, while the other process works on the rest."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory):
    """A home folder of the tests' own, for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        for name in ("CACHE", "CONFIG", "DATA", "STATE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        yield folder


@pytest.fixture(scope="module")
def chromium():
    """A real browser. CI fails without one."""
    try:
        with open_chromium() as opened:
            yield opened
    except Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "memory.db")


@pytest.fixture
def store(path):
    with SqliteStore(path) as opened:
        yield opened


@pytest.fixture
def rules(store, clock):
    return ToolMemoryStore(store, "default", clock)


@pytest.fixture
def call():
    def make(tool="search", **fields):
        fields.setdefault("create_time", datetime(2026, 1, 1, tzinfo=UTC))
        return ToolCallResult(tool_name=tool, **fields)

    return make


@pytest.fixture
def records():
    def make(number, tool="search", start=0):
        return [
            {"tool_name": tool, "input": {"q": n}, "output": str(n), "success": True}
            for n in range(start, start + number)
        ]

    return make


@pytest.fixture
def clock():
    return TestClock()


@pytest.fixture
def judge():
    return ScriptedJudge()


@pytest.fixture
def memory(path):
    with ToolMem(path) as opened:
        yield opened


@pytest.fixture
def scripted(path, judge, clock):
    """A memory whose judge is used like a model."""
    with ToolMem(path, judges={"default": judge}, clock=clock) as opened:
        yield opened


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A test's name stands in the environment of the processes that it starts: keep it short."""
    is_long = isinstance(val, str | bytes) and len(val) > 500
    return f"{argname} of {len(val)}" if is_long else None
