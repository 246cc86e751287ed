"""What is sent, what is understood of the answer, and what an adapter leaves behind."""

import asyncio
import gc
import json
import threading

import pytest
from pydantic import SecretStr

from toolmem.config.settings import LLMParams, LLMSettings
from toolmem.errors import ConfigError, ModelRefused, ReplyBroken
from toolmem.flow.runner import SystemClock
from toolmem.providers.dashscope import DashScopeLLM
from toolmem.providers.openai_compatible import OpenAICompatibleLLM
from toolmem.providers.prices import PriceTable
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import OK, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import plausible_reply

pytestmark = pytest.mark.filterwarnings("error")


def parameters(server, number=-1):
    body = server.requests[number].body
    return body.get("parameters", body)


async def test_a_chinese_prompt_arrives_and_is_answered_and_booked(make_llm, book):
    prompt = "评估工具“搜索”的调用。请用 ```json 回答。"
    with ModelServer() as server:
        llm = make_llm(server)
        reply = await llm.complete(prompt, book.purpose(tool="搜索"), json_reply=True)
        await llm.close()
    assert server.requests[0].prompt == prompt
    assert reply.text == plausible_reply(prompt)
    count = QwenTokenizer().count
    assert (reply.prompt_tokens, reply.completion_tokens) == (count(prompt), count(reply.text))
    assert (reply.estimated, reply.sent) == (False, True)
    (entry,) = book.entries
    assert (entry.backend, entry.model, entry.op, entry.tool) == (llm.backend, "qwen-plus", "op", "搜索")
    assert (entry.prompt_tokens, entry.completion_tokens, entry.outcome) == (
        reply.prompt_tokens,
        reply.completion_tokens,
        "ok",
    )
    assert 0 < entry.seconds < 60


async def test_lone_surrogates_are_sent_as_replacement_characters(make_llm, book):
    with ModelServer() as server:
        llm = make_llm(server)
        await llm.complete("a\ud800b", book.purpose())
        await llm.close()
    assert server.requests[0].prompt == "a\ufffdb"


async def test_only_what_is_configured_is_sent(make_llm, book):
    with ModelServer() as server:
        llm = make_llm(server)
        await llm.complete("p", book.purpose())
        sent = parameters(server)
        assert sent["temperature"] == 0.0
        assert not {"seed", "top_p", "max_tokens", "enable_thinking", "response_format"} & set(sent)
        await llm.close()
        llm = make_llm(server, temperature=0.5, seed=7, top_p=0.9, max_tokens=99, enable_thinking=False)
        await llm.complete("p", book.purpose(), json_reply=True)
        await llm.close()
    sent = parameters(server)
    expected = {"temperature": 0.5, "seed": 7, "top_p": 0.9, "max_tokens": 99, "enable_thinking": False}
    assert {name: sent[name] for name in expected} == expected
    assert sent["response_format"] == {"type": "json_object"}
    assert server.requests[-1].model == "qwen-plus"


async def test_a_service_without_structured_replies_is_asked_without(make_llm, book, caplog):
    refusal = Behaviour("no_json", 400, error=("InvalidParameter", "'response_format' is not supported by this model"))
    with ModelServer(Script([Rule(refusal, nth=(1,))])) as server:
        llm = make_llm(server)
        first = await llm.complete("p ```json", book.purpose(), json_reply=True)
        await llm.complete("q ```json", book.purpose(), json_reply=True)
        await llm.close()
    assert first.text == plausible_reply("p ```json")
    assert ["response_format" in parameters(server, number) for number in range(3)] == [True, False, False]
    assert book.outcomes == ["error: ModelRefused", "ok", "ok"]
    assert caplog.text.count("no structured replies") == 1


async def test_another_refusal_does_not_end_structured_replies(make_llm, book):
    with ModelServer(Script.failing("bad_request")) as server:
        llm = make_llm(server)
        for _ in range(2):
            with pytest.raises(ModelRefused):
                await llm.complete("p", book.purpose(), json_reply=True)
        await llm.close()
    assert ["response_format" in parameters(server, number) for number in range(2)] == [True, True]


async def test_tokens_are_counted_and_marked_where_the_reply_does_not_tell(make_llm, book):
    with ModelServer(Script([Rule(Behaviour(usage=False))])) as server:
        llm = make_llm(server)
        reply = await llm.complete("one two three", book.purpose())
        await llm.close()
    assert reply.estimated
    assert book.entries[0].estimated
    assert reply.prompt_tokens == 3
    assert reply.completion_tokens == QwenTokenizer().count(reply.text)


def answer(backend, choice, usage):
    if backend == "dashscope":
        return json.dumps({"output": {"choices": [choice]}, "usage": usage}).encode()
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    return json.dumps({"choices": [choice], "usage": {names.get(k, k): v for k, v in usage.items()}}).encode()


async def test_cached_tokens_are_booked_at_their_price(backend, make_llm, book):
    from toolmem.config.settings import Price

    usage = {"input_tokens": 1000, "output_tokens": 10, "prompt_tokens_details": {"cached_tokens": 800}}
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}
    prices = PriceTable({"qwen-plus": Price(input=1.0, output=2.0, cached_input=0.5)})
    with ModelServer(Script([Rule(Behaviour(body=answer(backend, choice, usage)))])) as server:
        llm = make_llm(server, price=prices)
        reply = await llm.complete("p", book.purpose())
        await llm.close()
    assert reply.cached_tokens == 800
    (entry,) = book.entries
    assert entry.cost == pytest.approx(0.2 * 1.0 + 0.8 * 0.5 + 0.01 * 2.0)
    assert entry.currency == "CNY"


async def test_a_reply_in_parts_is_put_together(backend, make_llm, book):
    parts = [{"text": "one "}, {"text": "two"}]
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": parts}}
    with ModelServer(Script([Rule(Behaviour(body=answer(backend, choice, {})))])) as server:
        llm = make_llm(server)
        assert (await llm.complete("p", book.purpose())).text == "one two"
        await llm.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"{}",
        b'{"output": {}, "choices": []}',
        b'{"output": {"choices": [1]}, "choices": [1]}',
        b'{"output": {"choices": [{"finish_reason": "stop"}]}, "choices": [{"finish_reason": "stop"}]}',
        b'{"output": "x", "choices": "x", "usage": "x"}',
        b'{"output": {"choices": [{"message": {"content": 3}}]}, "choices": [{"message": {"content": 3}}], "usage": 1}',
    ],
)
async def test_answers_of_a_wrong_shape_are_broken_replies(body, make_llm, book):
    with ModelServer(Script([Rule(Behaviour(body=body))])) as server:
        llm = make_llm(server, max_retries=0)
        with pytest.raises(ReplyBroken):
            await llm.complete("p", book.purpose())
        await llm.close()


async def test_two_models_have_two_addresses_and_two_keys(make_llm, book):
    import dashscope

    before = (dashscope.base_http_api_url, dashscope.api_key)
    with ModelServer(Script(key="key-of-a")) as a, ModelServer(Script(key="key-of-b")) as b:
        first, second = make_llm(a, key="key-of-a"), make_llm(b, key="key-of-b")
        await asyncio.gather(*(llm.complete("p", book.purpose()) for llm in (first, second) * 5))
        await first.close()
        await second.close()
    assert (len(a.requests), len(b.requests)) == (5, 5)
    assert (dashscope.base_http_api_url, dashscope.api_key) == before
    assert "authorization" not in a.requests[0].headers


async def test_connections_are_kept_and_closed(make_llm, book):
    with ModelServer() as server:
        llm = make_llm(server, max_concurrency=2)
        for _ in range(3):
            await asyncio.gather(*(llm.complete("p", book.purpose()) for _ in range(4)))
        assert server.connections_made <= 2
        await llm.close()
        await eventually(lambda: server.open_connections == 0)
        await llm.complete("after close", book.purpose())
        await llm.close()


async def eventually(condition, seconds=60.0):
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


@pytest.mark.parametrize("behaviour", [OK.after(5.0), Behaviour(hang=True)], ids=["slow", "hang"])
async def test_cancellation_leaves_no_task_and_no_socket(behaviour, make_llm, book):
    with ModelServer(Script([Rule(behaviour)])) as server:
        llm = make_llm(server)
        task = asyncio.ensure_future(llm.complete("one two three", book.purpose()))
        await eventually(lambda: server.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: server.in_flight == 0 and server.open_connections == 0)
        await llm.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
    assert book.outcomes == ["error: CancelledError"]
    assert (book.entries[0].prompt_tokens, book.entries[0].estimated) == (3, True)


def test_an_adapter_outlives_its_event_loops(make_llm, book):
    """Without `close`: sockets end with the loop, a warning about one would fail this test."""
    with ModelServer() as server:
        llm = make_llm(server)

        async def ask():
            await asyncio.gather(*(llm.complete("p", book.purpose()) for _ in range(20)))

        for _ in range(3):
            asyncio.run(ask())
            asyncio.run(eventually(lambda: server.open_connections == 0))
        gc.collect()
    assert len(server.requests) == 60
    assert server.most_in_flight <= 8


def test_two_loops_at_once_share_the_cap(make_llm, book):
    with ModelServer(Script(latency=0.02)) as server:
        llm = make_llm(server, max_concurrency=3)

        async def ask():
            await asyncio.gather(*(llm.complete("p", book.purpose()) for _ in range(15)))

        threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(server.requests) == 30
    assert server.most_in_flight == 3


# ---------------------------------------------------------------- before anything is sent


def make(kind, **settings):
    return kind(LLMSettings(**settings), tokenizer=QwenTokenizer(), clock=SystemClock(), setting="llm.judge")


@pytest.mark.parametrize("key", [None, SecretStr(""), SecretStr("  \n")])
def test_without_a_key_the_error_names_the_variable_and_the_setting(key):
    with pytest.raises(ConfigError) as caught:
        make(DashScopeLLM, backend="dashscope", params=LLMParams(api_key=key))
    assert "DASHSCOPE_API_KEY" in str(caught.value)
    assert "llm.judge.params.api_key" in str(caught.value)
    with pytest.raises(ConfigError, match="FLOW_LLM_API_KEY"):
        make(OpenAICompatibleLLM, backend="openai_compatible", model_name="m", params=LLMParams(api_key=key))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.9.10", "LOCALHOST."])
def test_a_service_on_this_machine_needs_no_key(host):
    url = f"http://{host}:11434/v1"
    assert make(OpenAICompatibleLLM, model_name="m", params=LLMParams(base_url=url))


@pytest.mark.parametrize("host", ["192.168.1.5", "localhost.example.org", "example.org", "127.0.0.1.x", "0.0.0.0"])
def test_a_service_elsewhere_needs_a_key_and_the_error_names_openais_variable(host):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        make(OpenAICompatibleLLM, model_name="m", params=LLMParams(base_url=f"http://{host}:11434/v1"))


async def test_without_a_key_no_authorization_is_sent(book):
    with ModelServer(Script(key="")) as server:  # refuses whoever sends one
        llm = make(OpenAICompatibleLLM, model_name="m", params=LLMParams(base_url=server.openai_url))
        await llm.complete("Hello", book.purpose())
        await llm.close()
    assert len(server.requests) == 1


def test_all_problems_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        make(OpenAICompatibleLLM, backend="openai_compatible", params=LLMParams(base_url="localhost:8000/v1"))
    assert len(caught.value.problems) == 3
    assert "llm.judge.model_name" in caught.value.problems[0]
    assert "http://" in caught.value.problems[1]


@pytest.mark.parametrize(
    "address", ["https://me:sk-hidden@host/v1", "https://host/v1?key=sk-hidden", "ftp://host", "http://"]
)
def test_an_address_that_cannot_be_used_is_refused_without_its_password(address):
    with pytest.raises(ConfigError, match=r"llm\.judge\.params\.base_url") as caught:
        make(DashScopeLLM, params=LLMParams(api_key=SecretStr("k"), base_url=address))
    assert "sk-hidden" not in str(caught.value)


def test_a_key_that_no_header_can_carry_is_refused_unseen():
    with pytest.raises(ConfigError, match="no HTTP header") as caught:
        make(DashScopeLLM, params=LLMParams(api_key=SecretStr("sk-abc\r\nX-Evil: 1")))
    assert "sk-abc" not in str(caught.value)


def test_a_budget_in_money_needs_a_price():
    from toolmem.providers.budget import Budget

    settings = LLMSettings(model_name="unheard-of", params=LLMParams(api_key=SecretStr("k")))
    with pytest.raises(ConfigError, match="'unheard-of' has no price"):
        DashScopeLLM(
            settings,
            tokenizer=QwenTokenizer(),
            clock=SystemClock(),
            budget=Budget(max_cost=1.0, price=PriceTable({})),
        )


def test_making_an_adapter_imports_no_sdk():
    import subprocess
    import sys

    code = (
        "import sys; from toolmem.providers.dashscope import DashScopeLLM;"
        "from toolmem.providers.tokenizer import QwenTokenizer;"
        "from toolmem.config.settings import LLMSettings, LLMParams; from toolmem.flow.runner import SystemClock;"
        "from pydantic import SecretStr;"
        "DashScopeLLM(LLMSettings(params=LLMParams(api_key=SecretStr('k'))), tokenizer=QwenTokenizer(),"
        " clock=SystemClock()); assert not {'dashscope', 'aiohttp', 'tiktoken'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
