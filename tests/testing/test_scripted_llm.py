"""The scripted model is dumb, recorded and deterministic."""

import asyncio

import pytest

from toolmem.errors import ModelError
from toolmem.guidance.writer_reply import read_guidance
from toolmem.judge.verdict_reply import read_verdict
from toolmem.protocols import LedgerEntry, Purpose
from toolmem.testing.scripted_llm import ScriptedLLM, ScriptExhaustedError, plausible_reply


class Book:
    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    def book(self, entry: LedgerEntry) -> None:
        self.entries.append(entry)


def purpose(book: Book | None = None, tool: str = "t") -> Purpose:
    return Purpose("w", "f", "o", tool, book or Book())


async def test_replies_come_in_order_and_requests_are_kept():
    book, llm = Book(), ScriptedLLM(["one", "three four"])
    texts = [
        (await llm.complete("p1", purpose(book, "a"))).text,
        (await llm.complete("p2", purpose(book, "b"), json_reply=True)).text,
    ]
    assert texts == ["one", "three four"]
    assert llm.prompts == ["p1", "p2"]
    assert [p.tool for p in llm.purposes] == ["a", "b"]
    assert [request.json_reply for request in llm.requests] == [False, True]
    assert [(entry.prompt_tokens, entry.completion_tokens, entry.outcome) for entry in book.entries] == [
        (1, 1, "ok"),
        (1, 3, "ok"),
    ]


async def test_a_used_up_script_is_loud():
    llm = ScriptedLLM(["one"])
    await llm.complete("p", purpose())
    with pytest.raises(ScriptExhaustedError, match="1 replies are used up; the next prompt was 'q'"):
        await llm.complete("q", purpose())


async def test_a_function_of_the_prompt_may_answer_or_fail():
    def reply(prompt: str) -> str | Exception:
        return ModelError("no") if "bad" in prompt else prompt.upper()

    book, llm = Book(), ScriptedLLM(reply)
    assert (await llm.complete("good", purpose(book))).text == "GOOD"
    with pytest.raises(ModelError, match="no"):
        await llm.complete("bad", purpose(book))
    assert [entry.outcome for entry in book.entries] == ["ok", "error: ModelError"]
    assert book.entries[1].prompt_tokens == 0


@pytest.mark.parametrize(("every", "failed"), [(0, []), (1, [1, 2, 3, 4, 5, 6]), (2, [2, 4, 6]), (5, [5])])
async def test_every_nth_request_fails_on_demand(every, failed):
    llm = ScriptedLLM(lambda _: "ok", fail_every=every)
    seen = []
    for number in range(1, 7):
        try:
            await llm.complete("p", purpose())
        except ModelError:
            seen.append(number)
    assert seen == failed


async def test_the_failure_of_the_script_may_pass():
    with pytest.raises(ModelError) as caught:
        await ScriptedLLM([], fail_every=1).complete("p", purpose())
    assert caught.value.temporary


async def test_a_failure_of_ones_own_is_raised():
    llm = ScriptedLLM(["ok"], fail_every=1, failure=ModelError("401", temporary=False))
    with pytest.raises(ModelError, match="401"):
        await llm.complete("p", purpose())


async def test_delayed_requests_run_at_once_and_the_most_in_flight_is_known():
    llm = ScriptedLLM(lambda prompt: prompt, delay=0.05)
    loop = asyncio.get_running_loop()
    started = loop.time()
    completions = await asyncio.gather(*(llm.complete(str(n), purpose()) for n in range(10)))
    assert [completion.text for completion in completions] == [str(n) for n in range(10)]
    assert loop.time() - started < 0.4
    assert llm.most_in_flight == 10


async def test_a_cancelled_request_is_recorded_and_booked():
    book, llm = Book(), ScriptedLLM(["late"], delay=30)
    task = asyncio.create_task(llm.complete("p", purpose(book)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.prompts == ["p"]
    assert [entry.outcome for entry in book.entries] == ["error: CancelledError"]


async def test_a_given_tokenizer_counts():
    class Words:
        def count(self, text: str) -> int:
            return len(text.split())

    completion = await ScriptedLLM(["x y"], tokenizer=Words()).complete("a b c", purpose())
    assert (completion.prompt_tokens, completion.completion_tokens) == (3, 2)


def test_one_text_in_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match="expected a list of replies"):
        ScriptedLLM("reply")


@pytest.mark.parametrize(
    ("output", "score"),
    [("3 rows", 1.0), ("Error: no such table", 0.0), ('Traceback "most" \\ recent', 0.0), ("```txt", 1.0)],
)
def test_plausible_verdicts_are_readable_and_always_alike(output, score):
    prompt = f'Judge. Form:\n```json\n{{"score": 1.0}}\n```\n{output}'
    assert read_verdict(plausible_reply(prompt)).score == score
    assert plausible_reply(prompt) == plausible_reply(prompt)


async def test_plausible_guidance_is_readable():
    llm = ScriptedLLM.plausible(model="m")
    completion = await llm.complete('Write.\n```txt\n...\n```\n#1 score=1.0\n#2 "score" ```json', purpose())
    assert "from 2 calls" in read_guidance(completion.text)
    assert (llm.backend, llm.model) == ("scripted", "m")
