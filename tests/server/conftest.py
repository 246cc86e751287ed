"""Real `toolmem serve` processes, and the load generator of the benchmarks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolmem.testing.service_process import ServiceProcess

ROOT = Path(__file__).resolve().parents[2]
READ_TIMEOUT = 3.0  # seconds for a head or a body to arrive at `served`

StartService = Callable[..., ServiceProcess]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service for all tests that do not stop it; they keep apart by their workspaces."""
    with ServiceProcess(tmp_path_factory.mktemp("served"), f"http.read_timeout={READ_TIMEOUT}") as service:
        yield service


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[StartService]:
    """Starts services of the test's own; what still runs at its end is killed."""
    started: list[ServiceProcess] = []

    def start(*overrides: str, folder: str = "service", **given: Any) -> ServiceProcess:
        started.append(ServiceProcess(tmp_path / folder, *overrides, **given))
        return started[-1].start()

    yield start
    for service in started:
        service.kill()


@pytest.fixture(scope="session")
def http_load() -> ModuleType:
    """benchmarks/http_load.py"""
    spec = importlib.util.spec_from_file_location("http_load", ROOT / "benchmarks" / "http_load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
