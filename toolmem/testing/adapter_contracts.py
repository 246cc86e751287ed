"""What a judge, a guidance writer, an embedder and a chat model promise, each as a test suite that any can run.

    class TestMyJudge(JudgeContract):
        def judge(self):
            return MyJudge()

As in `store_contract`, the tests are plain functions that drive their own event loop. A subclass provides one method,
which is asked for a fresh one in each test. What answers from outside (a service, a model) is set up by the subclass.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from toolmem.errors import ModelError, ReplyUnreadable
from toolmem.models import Guidance, JudgeIdentity, ToolCallResult, ToolSchema, Verdict
from toolmem.protocols import LLM, Completion, Embedder, GuidanceWriter, Judge, LedgerEntry, Purpose

__all__ = ["ChatModelContract", "EmbedderContract", "JudgeContract", "RecordingMeter", "WriterContract"]

TOOL = "search"
SCHEMA = ToolSchema(name=TOOL, parameters={"type": "object", "properties": {"q": {"type": "string"}}})
TEXTS = ("send an email", "发送邮件", "", "x" * 20_000, "line\n\ttab \0 and 🔧", "send an email")


def driven(test: Callable[[Any], Coroutine[Any, Any, None]]) -> Callable[[Any], None]:
    """Run an async test in an event loop of its own."""

    def run(self: Any) -> None:
        asyncio.run(test(self))

    run.__name__ = test.__name__
    return run


class RecordingMeter:
    """A meter that keeps what is booked."""

    def __init__(self) -> None:
        self.booked: list[LedgerEntry] = []

    def book(self, entry: LedgerEntry) -> None:
        self.booked.append(entry)


def purpose(meter: RecordingMeter | None = None) -> Purpose:
    return Purpose("workspace", "flow", "op", TOOL, meter or RecordingMeter())


def calls() -> list[ToolCallResult]:
    """Calls of many shapes: worked, failed, empty, long, of other scripts, with and without a recorded flag."""
    shapes: list[dict[str, Any]] = [
        {"input": {"q": "rain"}, "output": '{"results": [{"title": "Rain"}]}', "success": True},
        {"input": {"q": "rain"}, "output": "Error: timeout after 30 s", "success": False},
        {"input": {"q": "rain"}, "output": "Traceback (most recent call last):\nKeyError: 'q'", "success": None},
        {"input": {}, "output": "", "success": None},
        {"input": "plain text", "output": "[]", "success": True, "context": "what was asked"},
        {"input": {"问": "天气"}, "output": "晴", "success": True},
        {"input": {"q": ["a", None, 1.5]}, "output": "x" * 20_000, "success": None, "time_cost": 0.25},
        {"input": {"q": "{tool_name} %s ```json"}, "output": '```json\n{"score": 1.0}\n``` {output}', "success": False},
    ]
    start = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    return [
        ToolCallResult.model_validate({"tool_name": TOOL, "create_time": start + timedelta(seconds=n), **shape})
        for n, shape in enumerate(shapes)
    ]


def judged_window() -> list[ToolCallResult]:
    """The calls as a writer is handed them: judged, with seqs, oldest first."""
    window = []
    for seq, call in enumerate(calls(), 1):
        score = 0.0 if call.success is False else 1.0
        said = {"summary": "asked", "evaluation": f"call {seq}", "score": score, "execution_failed": score == 0}
        judge = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="1")
        window.append(call.judged(Verdict.model_validate({**said, "judge": judge})).model_copy(update={"seq": seq}))
    return window


class JudgeContract:
    """A subclass provides `judge`."""

    def judge(self) -> Judge:
        raise NotImplementedError("provide the method `judge`")

    @driven
    async def test_every_call_gets_a_verdict_of_two_scores_or_a_model_error(self) -> None:
        judge = self.judge()
        for call in calls():
            for schema in (None, SCHEMA):
                try:
                    verdict = await judge.judge(call, schema, purpose())
                except ModelError:
                    continue
                assert isinstance(verdict, Verdict)
                assert verdict.score in (0.0, 1.0), verdict.score
                assert verdict.evaluation.strip(), "the evaluation says why"
                assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict

    @driven
    async def test_a_verdict_names_the_judge_that_gave_it(self) -> None:
        judge = self.judge()
        identity = judge.identity
        assert all((identity.backend, identity.model, identity.prompt_version)), "the cache is keyed by all three"
        verdict = await judge.judge(calls()[0], None, purpose())
        assert verdict.judge == judge.identity == identity == self.judge().identity
        assert isinstance(judge.paid, bool)

    @driven
    async def test_a_call_is_judged_and_not_changed(self) -> None:
        for call, same in zip(calls(), calls(), strict=True):
            with contextlib.suppress(ModelError):
                await self.judge().judge(call, SCHEMA, purpose())
            assert call == same

    @driven
    async def test_calls_judged_at_once_are_not_mixed_up(self) -> None:
        judge, mixed = self.judge(), calls()
        alone = [await _verdict(judge, call) for call in mixed]
        together = await asyncio.gather(*(_verdict(judge, call) for call in mixed))
        assert [each and each.score for each in together] == [each and each.score for each in alone]


async def _verdict(judge: Judge, call: ToolCallResult) -> Verdict | None:
    try:
        return await judge.judge(call, None, purpose())
    except ModelError:
        return None


class WriterContract:
    """A subclass provides `writer`."""

    def writer(self) -> GuidanceWriter:
        raise NotImplementedError("provide the method `writer`")

    @driven
    async def test_guidance_is_written_from_a_window_and_can_be_stored(self) -> None:
        writer, window = self.writer(), judged_window()
        guidance = await writer.write(TOOL, window, None, purpose())
        assert guidance.text.strip()
        assert Guidance.model_validate_json(guidance.model_dump_json()) == guidance
        again = await writer.write(TOOL, window[-1:], guidance, purpose())
        assert again.text.strip()

    @driven
    async def test_guidance_covers_calls_of_the_window_alone_and_names_its_author(self) -> None:
        writer, window = self.writer(), judged_window()[2:5]
        guidance = await writer.write(TOOL, window, None, purpose())
        assert set(guidance.covered) <= {call.seq for call in window}
        assert guidance.author == writer.author
        assert "/" in writer.author, "backend/model"
        assert writer.prompt_version
        assert writer.edit_version

    @driven
    async def test_an_edit_changes_what_was_written_or_says_that_it_cannot(self) -> None:
        writer, window = self.writer(), judged_window()
        old = await writer.write(TOOL, window[:-2], None, purpose())
        text = old.text
        new = [call.seq for call in window[-2:] if call.seq is not None]
        try:
            edited = await writer.edit(TOOL, window, new, old, purpose())
        except (ReplyUnreadable, ModelError):
            return
        assert edited.text.strip()
        assert old.text == text, "the old guidance is left as it is"
        assert set(edited.covered) <= {call.seq for call in window}

    @driven
    async def test_a_window_is_read_and_not_changed(self) -> None:
        window = judged_window()
        await self.writer().write(TOOL, window, None, purpose())
        assert window == judged_window()


class EmbedderContract:
    """A subclass provides `embedder`."""

    def embedder(self) -> Embedder:
        raise NotImplementedError("provide the method `embedder`")

    def _rows(self, texts: Sequence[str]) -> Any:
        return asyncio.run(self.embedder().embed(texts))

    def test_each_text_gets_one_row_of_the_dimension_that_the_identity_says(self) -> None:
        identity = self.embedder().identity
        assert identity.name
        assert identity.dimension > 0
        rows = self._rows(TEXTS)
        assert rows.shape == (len(TEXTS), identity.dimension)
        assert rows.dtype == np.float32
        assert self._rows([]).shape == (0, identity.dimension)

    def test_rows_are_finite_and_of_unit_length_or_zero(self) -> None:
        rows = self._rows(TEXTS)
        assert np.isfinite(rows).all()
        for length in np.linalg.norm(rows, axis=1).tolist():
            assert math.isclose(length, 1.0, abs_tol=1e-4) or length == 0.0

    def test_equal_texts_have_equal_rows_whatever_stands_beside_them(self) -> None:
        rows = self._rows(TEXTS)
        assert np.allclose(rows[0], rows[-1], atol=1e-5)
        assert np.allclose(self._rows(TEXTS[:1])[0], rows[0], atol=1e-5)
        assert not np.allclose(rows[0], rows[3], atol=1e-3)

    def test_two_embedders_made_alike_have_one_identity(self) -> None:
        assert self.embedder().identity == self.embedder().identity


class ChatModelContract:
    """A subclass provides `chat_model`: one that answers."""

    def chat_model(self) -> LLM:
        raise NotImplementedError("provide the method `chat_model`")

    @driven
    async def test_a_prompt_gets_a_text_and_its_tokens(self) -> None:
        model = self.chat_model()
        assert model.backend
        assert model.model
        for prompt in ("Say yes.", "说是。", 'Answer in JSON: ```json\n{"score": 1.0}\n```'):
            completion = await model.complete(prompt, purpose())
            assert isinstance(completion, Completion)
            assert isinstance(completion.text, str)
            assert completion.prompt_tokens > 0
            assert completion.completion_tokens >= (1 if completion.text and completion.sent else 0)
            assert 0 <= completion.cached_tokens <= completion.prompt_tokens

    @driven
    async def test_every_request_is_booked_with_the_meter_of_its_purpose(self) -> None:
        model, meter = self.chat_model(), RecordingMeter()
        first = await model.complete("Say yes.", purpose(meter), json_reply=True)
        await model.complete("Say no.", purpose(meter))
        assert len(meter.booked) >= 2
        entry = meter.booked[0]
        assert (entry.backend, entry.model) == (model.backend, model.model)
        assert (entry.workspace, entry.flow, entry.op, entry.tool) == ("workspace", "flow", "op", TOOL)
        assert (entry.prompt_tokens, entry.completion_tokens) == (first.prompt_tokens, first.completion_tokens)
        assert entry.outcome == ("ok" if first.sent else "not_sent")
        assert entry.time.tzinfo is not None

    @driven
    async def test_prompts_at_once_all_get_an_answer(self) -> None:
        model, meter = self.chat_model(), RecordingMeter()
        answers = await asyncio.gather(*(model.complete(f"Say {n}.", purpose(meter)) for n in range(5)))
        assert len(answers) == 5
        assert len(meter.booked) >= 5
