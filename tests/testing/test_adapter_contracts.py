"""The built-in judges, writers, embedders and chat models pass the public contracts."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from pydantic import SecretStr

from toolmem.config.settings import EmbeddingParams, EmbeddingSettings, LLMParams, LLMSettings
from toolmem.flow.runner import SystemClock
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.llm_writer import LLMWriter, writer_prompts
from toolmem.judge.llm_judge import LLMJudge, judge_prompts
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import JudgeIdentity, Verdict
from toolmem.protocols import Completion, EmbedderIdentity
from toolmem.providers.dashscope import DashScopeEmbedder, DashScopeLLM
from toolmem.providers.dry_run import DryRunLLM
from toolmem.providers.hashing import HashingEmbedder
from toolmem.providers.openai_compatible import OpenAICompatibleEmbedder, OpenAICompatibleLLM
from toolmem.providers.packaged_encoder import PackagedEncoder
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.adapter_contracts import ChatModelContract, EmbedderContract, JudgeContract, WriterContract
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import ScriptedLLM


class TestTheRuleBasedCheck(JudgeContract):
    def judge(self):
        return RuleBasedCheck()


class TestTheModelAsJudge(JudgeContract):
    def judge(self):
        return LLMJudge(ScriptedLLM.plausible(), judge_prompts(None), QwenTokenizer())


class TestTheDataDrivenWriter(WriterContract):
    def writer(self):
        return DataDrivenWriter()


class TestTheModelAsWriter(WriterContract):
    def writer(self):
        return LLMWriter(ScriptedLLM.plausible(), writer_prompts(None), QwenTokenizer())


class TestTheHashingEmbedder(EmbedderContract):
    def embedder(self):
        return HashingEmbedder(64)


class TestThePackagedEncoder(EmbedderContract):
    def embedder(self):
        return PackagedEncoder()


class TestTheScriptedModel(ChatModelContract):
    def chat_model(self):
        return ScriptedLLM(lambda prompt: "yes")


class TestTheDryRun(ChatModelContract):
    def chat_model(self):
        return DryRunLLM("qwen-plus", QwenTokenizer(), clock=SystemClock(), price=lambda *_: (None, ""))


# -- the remote ones, against the loopback server


class OnAServer:
    @pytest.fixture(autouse=True)
    def _server(self):
        with ModelServer() as self.server:
            yield

    def made(self, backend, settings, params, adapter):
        url = self.server.dashscope_url if backend == "dashscope" else self.server.openai_url
        model = "qwen-plus" if settings is LLMSettings else "text-embedding-v4"
        given = params(base_url=url, api_key=SecretStr("sk-none"))
        section = settings(backend=backend, model_name=model, params=given)
        return adapter(section, tokenizer=QwenTokenizer(), clock=SystemClock())


class TestDashScope(OnAServer, ChatModelContract):
    def chat_model(self):
        return self.made("dashscope", LLMSettings, LLMParams, DashScopeLLM)


class TestOpenAICompatible(OnAServer, ChatModelContract):
    def chat_model(self):
        return self.made("openai_compatible", LLMSettings, LLMParams, OpenAICompatibleLLM)


class TestTheDashScopeEmbedder(OnAServer, EmbedderContract):
    def embedder(self):
        return self.made("dashscope", EmbeddingSettings, EmbeddingParams, DashScopeEmbedder)


class TestTheOpenAICompatibleEmbedder(OnAServer, EmbedderContract):
    def embedder(self):
        return self.made("openai_compatible", EmbeddingSettings, EmbeddingParams, OpenAICompatibleEmbedder)


# -- what the contracts refuse


class SilentJudge:
    identity = JudgeIdentity(backend="silent", model="no_reasons", prompt_version="1")
    paid = False

    async def judge(self, call, schema, purpose):
        return Verdict(summary="", evaluation=" ", score=0.0, execution_failed=False, judge=self.identity)


class LongRows:
    identity = EmbedderIdentity("long", "rows", 3)

    async def embed(self, texts):
        return np.full((len(texts), 3), 7, dtype=np.float32)


class FreeModel:
    backend, model = "free", "unbooked"

    async def complete(self, prompt, purpose, *, json_reply=False):
        return Completion("yes", 1, 1)


class ForgetfulWriter(DataDrivenWriter):
    async def write(self, tool_name, calls, old, purpose):
        guidance = await super().write(tool_name, calls, old, purpose)
        return guidance.model_copy(update={"covered": [99]})


COVERS = "test_guidance_covers_calls_of_the_window_alone_and_names_its_author"


@pytest.mark.parametrize(
    ("contract", "method", "broken", "test"),
    [
        (JudgeContract, "judge", SilentJudge, "test_every_call_gets_a_verdict_of_two_scores_or_a_model_error"),
        (EmbedderContract, "embedder", LongRows, "test_rows_are_finite_and_of_unit_length_or_zero"),
        (ChatModelContract, "chat_model", FreeModel, "test_every_request_is_booked_with_the_meter_of_its_purpose"),
        (
            WriterContract,
            "writer",
            ForgetfulWriter,
            "test_guidance_covers_calls_of_the_window_alone_and_names_its_author",
        ),
    ],
)
def test_what_breaks_a_promise_fails_its_contract(contract, method, broken, test):
    suite = type("Suite", (contract,), {method: lambda self: broken()})()
    with pytest.raises(AssertionError):
        getattr(suite, test)()


def test_a_suite_without_its_adapter_says_which_method_to_provide():
    with pytest.raises(NotImplementedError, match="`judge`"):
        asyncio.run(asyncio.to_thread(JudgeContract().test_a_verdict_names_the_judge_that_gave_it))
