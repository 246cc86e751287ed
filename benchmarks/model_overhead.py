"""What a request to a remote model costs on this side: CPU time per request against a server that answers at once.

    python benchmarks/model_overhead.py [--quick] [--json FILE]

The loopback server runs in a thread of its own; only the CPU time of the thread that asks is counted: adapter, SDK,
HTTP client, retries, booking. The prompts are evaluation prompts of the project's own sample.
"""

from __future__ import annotations

import asyncio
import time

from pydantic import SecretStr
from tables import Figure, arguments, show

from toolmem.config.settings import LLMParams, LLMSettings
from toolmem.flow.runner import SystemClock
from toolmem.formats.files import read_file
from toolmem.judge.llm_judge import LLMJudge, judge_prompts
from toolmem.protocols import LedgerEntry, Purpose
from toolmem.providers.dashscope import DashScopeLLM
from toolmem.providers.openai_compatible import OpenAICompatibleLLM
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.sample import sample_path
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer


class Book:
    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    def book(self, entry: LedgerEntry) -> None:
        self.entries.append(entry)


def sample_prompts(llm: RemoteLLM, count: int) -> list[str]:
    judge = LLMJudge(llm, judge_prompts(), QwenTokenizer())
    calls = [call for _, call in read_file(sample_path(), clock=SystemClock()).calls]
    return [judge.prompt(calls[i % len(calls)], None) for i in range(count)]


def adapter(kind: type[RemoteLLM], server: ModelServer, concurrency: int) -> RemoteLLM:
    url = server.dashscope_url if kind is DashScopeLLM else server.openai_url
    params = LLMParams(base_url=url, api_key=SecretStr("loopback"), max_concurrency=concurrency)
    return kind(LLMSettings(model_name="qwen-plus", params=params), tokenizer=QwenTokenizer(), clock=SystemClock())  # type: ignore[call-arg]


async def cpu_per_request(llm: RemoteLLM, prompts: list[str]) -> tuple[float, float]:
    """CPU and wall-clock seconds per request."""
    purpose = Purpose("w", "f", "o", "t", Book())
    await llm.complete(prompts[0], purpose, json_reply=True)  # imports the SDK, loads the vocabulary, connects
    begun, cpu = time.perf_counter(), time.thread_time()
    await asyncio.gather(*(llm.complete(prompt, purpose, json_reply=True) for prompt in prompts))
    spent = time.thread_time() - cpu, time.perf_counter() - begun
    await llm.close()
    return spent[0] / len(prompts), spent[1] / len(prompts)


def main() -> None:
    options = arguments(__doc__)
    requests = 200 if options.quick else 2000
    figures: list[Figure] = []
    for kind in (DashScopeLLM, OpenAICompatibleLLM):
        with ModelServer(Script()) as server:
            llm = adapter(kind, server, 8)
            prompts = sample_prompts(llm, requests)
            characters = sum(map(len, prompts)) / len(prompts)
            cpu, wall = asyncio.run(cpu_per_request(llm, prompts))
        basis = f"{requests} requests, 8 in flight, prompts of {characters:.0f} characters"
        figures += [
            Figure(f"{llm.backend}: CPU of our side per request", cpu * 1000, "ms", 2.0, "", basis),
            Figure(
                f"{llm.backend}: wall clock per request (server on the same cores)", wall * 1000, "ms", None, "", basis
            ),
        ]
    show(figures, options.json)


if __name__ == "__main__":
    main()
