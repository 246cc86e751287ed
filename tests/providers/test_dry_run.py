"""The model that is never asked."""

from datetime import UTC, datetime

from toolmem.flow.runner import SystemClock
from toolmem.protocols import Completion, LedgerEntry, Purpose
from toolmem.providers.dry_run import DryRunLLM
from toolmem.providers.tokenizer import QwenTokenizer


class Book:
    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    def book(self, entry: LedgerEntry) -> None:
        self.entries.append(entry)


def purpose(book: Book) -> Purpose:
    return Purpose("w", "add_tool_call_result", "parse_tool_call_result_op", "search", book)


async def test_the_prompt_is_counted_and_booked_as_not_sent():
    book = Book()
    llm = DryRunLLM("qwen-plus", QwenTokenizer(), clock=SystemClock())
    completion = await llm.complete("hello world", purpose(book), json_reply=True)
    assert completion == Completion("", 2, 0, estimated=True, sent=False)
    (entry,) = book.entries
    assert (entry.workspace, entry.flow, entry.op, entry.tool) == (
        "w",
        "add_tool_call_result",
        "parse_tool_call_result_op",
        "search",
    )
    assert (entry.backend, entry.model, entry.outcome) == ("dry_run", "qwen-plus", "not_sent")
    assert (entry.prompt_tokens, entry.completion_tokens, entry.estimated) == (2, 0, True)
    assert (entry.cost, entry.currency, entry.seconds, entry.waited) == (None, "", 0.0, 0.0)
    assert abs((datetime.now(UTC) - entry.time).total_seconds()) < 60


async def test_a_price_is_asked_for_the_prompt_alone():
    asked = []

    def price(model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> tuple[float, str]:
        asked.append((model, prompt_tokens, completion_tokens, cached_tokens))
        return prompt_tokens * 0.5, "CNY"

    book = Book()
    await DryRunLLM("qwen-plus", QwenTokenizer(), clock=SystemClock(), price=price).complete("a b c", purpose(book))
    assert asked == [("qwen-plus", 3, 0, 0)]
    assert (book.entries[0].cost, book.entries[0].currency) == (1.5, "CNY")


async def test_a_model_without_a_price_is_booked_without_a_cost():
    book = Book()
    llm = DryRunLLM("mine", QwenTokenizer(), clock=SystemClock(), price=lambda *_: (None, ""))
    await llm.complete("a", purpose(book))
    assert (book.entries[0].cost, book.entries[0].currency) == (None, "")
