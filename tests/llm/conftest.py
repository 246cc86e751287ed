"""A memory whose model is a server on this machine, in either protocol."""

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


class Asking:
    """A memory over a server, and what it cost."""

    def __init__(self, protocol, faults, more, store, clock):
        self.server = ModelServer(faults)
        self._arguments = (protocol, more, store, clock)

    def __enter__(self):
        protocol, more, store, clock = self._arguments
        self.server.__enter__()
        settings = [
            *settings_of(protocol, self.server, *more),
            f"vector_store.default.params.path={store}",
        ]
        self.memory = ToolMem(overrides=settings, clock=clock)
        return self

    def __exit__(self, *error):
        self.memory.close()
        self.server.__exit__(*error)

    def ledger(self):
        return self.memory.ledger()


@pytest.fixture(params=PROTOCOLS)
def asking(request, path, clock):
    def make(*faults, more=(), own_clock=True):
        return Asking(request.param, faults, more, path, clock if own_clock else None)

    return make
