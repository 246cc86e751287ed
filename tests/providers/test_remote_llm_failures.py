"""However a model fails, it is one of a few typed errors, what may pass is tried again, and every attempt is booked."""

import asyncio
import logging

import pytest

from toolmem.errors import (
    ContentFiltered,
    ModelDenied,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    ReplyBroken,
    ReplyEmpty,
    ReplyTruncated,
)
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import FAULTS, PASSING, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import plausible_reply

pytestmark = pytest.mark.filterwarnings("error")

PROMPT = "Judge the call of 搜索. Reply with ```json and a score."

# fault -> error, and whether its reply was lost or unusable after work that may be billed
EXPECTED: dict[str, tuple[type[ModelError], bool]] = {
    "server_error": (ModelOverloaded, False),
    "unavailable": (ModelOverloaded, False),
    "bad_gateway": (ModelOverloaded, False),
    "throttled": (ModelOverloaded, False),
    "retry_after": (ModelOverloaded, False),
    "garbage": (ReplyBroken, True),
    "broken_json": (ReplyBroken, True),
    "error_in_200": (ModelOverloaded, True),
    "no_body": (ReplyBroken, True),
    "empty": (ReplyEmpty, True),
    "truncated": (ReplyTruncated, True),
    "cut": (ModelUnreachable, True),
    "cut_within": (ModelUnreachable, True),
    "hang": (ModelUnreachable, True),
    "unauthorized": (ModelDenied, False),
    "forbidden": (ModelDenied, False),
    "arrears": (ModelDenied, False),
    "unknown_model": (ModelDenied, False),
    "bad_request": (ModelRefused, False),
    "content_filter": (ContentFiltered, False),
    "filtered_reply": (ContentFiltered, True),
}


def test_every_fault_that_the_server_can_play_is_expected_here():
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize("fault", EXPECTED)
async def test_a_lasting_failure_is_a_typed_error_after_as_many_attempts_as_make_sense(fault, make_llm, book):
    expected, billed = EXPECTED[fault]
    with ModelServer(Script.failing(fault)) as server:
        llm = make_llm(server, timeout=0.15 if fault == "hang" else 5.0, max_retries=1)
        with pytest.raises(ModelError) as caught:
            await llm.complete(PROMPT, book.purpose(), json_reply=True)
        await llm.close()
    error = caught.value
    assert type(error) is expected
    assert error.temporary == (fault in PASSING)
    assert error.fatal == (expected is ModelDenied)
    assert str(error).startswith(f"{llm.backend}/qwen-plus: ")
    attempts = 2 if fault in PASSING else 1
    assert len(server.requests) == attempts
    assert book.outcomes == [f"error: {expected.__name__}"] * attempts
    tokens = QwenTokenizer().count(PROMPT) if billed else 0
    assert [entry.prompt_tokens for entry in book.entries] == [tokens] * attempts


@pytest.mark.parametrize("fault", PASSING)
async def test_a_failing_server_answers_everything_in_the_end(fault, make_llm, book):
    prompts = [f"{PROMPT} Call {number}." for number in range(12)]
    with ModelServer(Script.failing(fault, every=5)) as server:
        llm = make_llm(server, timeout=0.5 if fault == "hang" else 5.0)
        replies = await asyncio.gather(*(llm.complete(prompt, book.purpose(), json_reply=True) for prompt in prompts))
        await llm.close()
    assert [reply.text for reply in replies] == [plausible_reply(prompt) for prompt in prompts]
    failed = len(server.requests) - len(prompts)
    assert failed >= 2
    assert book.outcomes.count("ok") == len(prompts)
    assert len(book.entries) == len(server.requests), "each request on the wire is one entry"


async def test_a_dropped_connection_is_not_resent_in_silence(make_llm, book):
    with ModelServer(Script([Rule(FAULTS["cut"], nth=(2,))])) as server:
        llm = make_llm(server, max_retries=0)
        await llm.complete("first, which opens the connection", book.purpose())
        with pytest.raises(ModelUnreachable, match="cut before an answer"):
            await llm.complete("second", book.purpose())
        await llm.close()
    assert len(server.requests) == 2
    assert book.outcomes == ["ok", "error: ModelUnreachable"]


async def test_nobody_there_costs_nothing_and_says_so(make_llm, book):
    server = ModelServer().start()
    server.stop()
    llm = make_llm(server, max_retries=2)
    with pytest.raises(ModelUnreachable, match="no connection") as caught:
        await llm.complete(PROMPT, book.purpose())
    await llm.close()
    assert caught.value.temporary
    assert [(entry.outcome, entry.prompt_tokens) for entry in book.entries] == [("error: ModelUnreachable", 0)] * 3


async def test_a_redirect_is_not_followed(make_llm, book):
    elsewhere = Behaviour("redirect", 307, body=b"", headers=(("Location", "http://127.0.0.1:9/other"),))
    with ModelServer(Script([Rule(elsewhere)])) as server:
        llm = make_llm(server)
        with pytest.raises(ModelDenied, match="set base_url"):
            await llm.complete(PROMPT, book.purpose())
        await llm.close()
    assert len(server.requests) == 1


async def test_a_reply_cut_off_by_our_own_limit_is_not_asked_for_again(make_llm, book):
    with ModelServer(Script.failing("truncated")) as server:
        llm = make_llm(server, max_tokens=20)
        with pytest.raises(ReplyTruncated, match="max_tokens=20"):
            await llm.complete(PROMPT, book.purpose())
        await llm.close()
    assert len(server.requests) == 1
    assert book.entries[0].completion_tokens > 0


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (400, "InvalidParameter", "Model not exist.", ModelDenied),
        (404, "model_not_found", "The model `x` does not exist", ModelDenied),
        (429, "insufficient_quota", "You exceeded your current quota", ModelDenied),
        (403, "AllocationQuota.FreeTierOnly", "The free tier is exhausted.", ModelDenied),
        (402, "", "pay", ModelDenied),
        (400, "Throttling.AllocationQuota", "later", ModelOverloaded),
        (200, "data_inspection_failed", "no", ContentFiltered),
        (413, "", "too long", ModelRefused),
        (529, "overloaded_error", "later", ModelOverloaded),
    ],
)
async def test_codes_say_more_than_the_status(status, code, message, expected, make_llm, book):
    with ModelServer(Script([Rule(Behaviour("it", status, error=(code, message)))])) as server:
        llm = make_llm(server, max_retries=0)
        with pytest.raises(ModelError) as caught:
            await llm.complete(PROMPT, book.purpose())
        await llm.close()
    assert type(caught.value) is expected
    assert message in str(caught.value)


async def test_neither_key_nor_prompt_gets_into_errors_or_logs(make_llm, book, caplog):
    prompt = "A private remark of the user, long enough to be recognized, and \x00 some more of it."
    echo = (
        "InvalidParameter",
        f"key sk-0123456789abcdef-secret and Bearer of-somebody-else are fine but what is this: {prompt}",
    )
    caplog.set_level(logging.INFO)
    with ModelServer(Script([Rule(Behaviour("echo", 500, error=echo), nth=(1,)), Rule(FAULTS["garbage"])])) as server:
        llm = make_llm(server, max_retries=2)
        with pytest.raises(ModelError) as caught:
            await llm.complete(prompt, book.purpose())
        await llm.close()
    shown = "\n".join([caplog.text, str(caught.value), repr(caught.value), repr(llm), repr(llm.for_op())])
    assert "attempt 1 failed" in shown
    assert "private remark" not in shown
    assert "sk-01234" not in shown
    assert "somebody-else" not in shown
    assert {record.name for record in caplog.records} == {"toolmem.transport"}
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_the_prompt_is_logged_at_debug(make_llm, book, caplog):
    caplog.set_level(logging.DEBUG, logger="toolmem")
    with ModelServer() as server:
        llm = make_llm(server)
        await llm.complete("something to see", book.purpose())
        await llm.close()
    assert "something to see" in caplog.text
    assert "sk-01234" not in caplog.text


async def test_logs_of_other_users_of_the_sdk_are_left_alone(make_llm, book, caplog):
    with ModelServer(Script.failing("garbage")) as server:
        llm = make_llm(server, max_retries=0)
        with pytest.raises(ReplyBroken):
            await llm.complete(PROMPT, book.purpose())
        await llm.close()
    logging.getLogger("dashscope").error("somebody else's")
    assert [record.message for record in caplog.records if record.name == "dashscope"] == ["somebody else's"]
