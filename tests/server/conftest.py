"""A real `toolmem serve`, in a process of its own, for each test that asks for one."""

import pytest
from console_site import start, stop


@pytest.fixture
def serve(tmp_path):
    """Starts services in the test's own folder."""
    yield from _starter(tmp_path)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """One service for the tests of a module, each with a workspace of its own."""
    starter = _starter(tmp_path_factory.mktemp("service"))
    yield next(starter)()[0]
    next(starter, None)


def _starter(folder):
    running = []

    def begin(*overrides, **more):
        url, process = start(folder, *overrides, **more)
        running.append(process)
        return url, process

    yield begin
    for process in running:
        stop(process)
