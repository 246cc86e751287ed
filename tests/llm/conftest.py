"""A memory whose model is a server on this machine, in either protocol."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from model_settings import NO_WAIT, model_of

from toolmem import ToolMem
from toolmem.testing.model_server import ModelServer


@pytest.fixture(params=["openai_compatible", "dashscope"])
def asking(request, path, clock):
    """Opens a memory over a server, which tells what it was asked."""

    @contextmanager
    def opened(*faults, more=()):
        with ModelServer(faults) as server:
            own = ["llm.default.params.timeout=2", f"vector_store.default.params.path={path}"]
            settings = model_of(server, *NO_WAIT, *own, *more, backend=request.param)
            with ToolMem(overrides=settings, clock=clock) as memory:
                yield SimpleNamespace(server=server, memory=memory, ledger=memory.ledger)

    return opened
