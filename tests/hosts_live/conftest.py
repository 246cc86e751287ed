"""Nothing here runs unless it is asked for by its marker: `make test-hosts`."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "hosts" in config.option.markexpr:
        return
    live = [item for item in items if HERE in item.path.parents]
    items[:] = [item for item in items if item not in live]
    config.hook.pytest_deselected(items=live)
