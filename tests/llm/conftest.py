"""A memory whose model is a server on this machine, in either protocol."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from toolmem import ToolMem
from toolmem.testing.model_server import ModelServer

PROTOCOLS = ("openai_compatible", "dashscope")
NO_WAIT = [
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
]


def settings_of(protocol, server, *more, key="sk-0123456789"):
    url = server.openai_url if protocol == "openai_compatible" else server.dashscope_url
    return [
        f"llm.default.backend={protocol}",
        f"llm.default.params.base_url={url}",
        f"llm.default.params.api_key={key}",
        "llm.default.model_name=qwen-plus",
        "llm.default.params.timeout=2",
        *NO_WAIT,
        *more,
    ]


@pytest.fixture(params=PROTOCOLS)
def asking(request, path, clock):
    """Opens a memory over a server, which tells what it was asked."""

    @contextmanager
    def opened(*faults, more=()):
        with ModelServer(faults) as server:
            settings = settings_of(request.param, server, *more)
            settings.append(f"vector_store.default.params.path={path}")
            with ToolMem(overrides=settings, clock=clock) as memory:
                yield SimpleNamespace(server=server, memory=memory, ledger=memory.ledger)

    return opened
