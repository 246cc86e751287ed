"""Settings of tests: a model that is a server on this machine, and no waiting between requests."""

NO_WAIT = [
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.retry_evaluations_op.params.evaluation_sleep_interval=0",
    "op.rejudge_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
]


def model_of(server, *more, backend="openai_compatible"):
    url = server.openai_url if backend == "openai_compatible" else server.dashscope_url
    return [
        f"llm.default.backend={backend}",
        f"llm.default.params.base_url={url}",
        "llm.default.params.api_key=sk-0123456789",
        "llm.default.model_name=qwen-plus",
        *more,
    ]
