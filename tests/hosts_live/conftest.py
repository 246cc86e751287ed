"""Nothing here runs unless it is asked for by its marker: `make test-hosts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts_live.step_report import write_beside

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "hosts" in config.option.markexpr:
        return
    live = [item for item in items if HERE in item.path.parents]
    items[:] = [item for item in items if item not in live]
    config.hook.pytest_deselected(items=live)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The scenario reports its own steps."""
    name = report.nodeid.rpartition("::")[2]
    ended = report.when == "call" or (report.when == "setup" and report.outcome != "passed")
    if ended and "hosts" in report.keywords and "hosts_live" in report.nodeid and "whole_path" not in report.nodeid:
        outcomes[name.removeprefix("test_").replace("_", " ")] = report.outcome


outcomes: dict[str, str] = {}


def pytest_sessionfinish() -> None:
    if outcomes:
        write_beside(outcomes)
