"""What each line of a card was good for: shown, followed, worked; a line that led to failures is withheld."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import takes_less_than
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.proof import Talk, is_withheld, with_proof
from toolmem.models import Claim, Guidance, RepairHistory, ToolCallResult
from toolmem.store.decided import DecidedStore
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import START, ManualClock
from toolmem.testing.scripted_llm import ScriptedLLM

Made = tuple[dict[str, Any], str]  # arguments of a call, and its error, "" for none

ERROR = "E503 weight implausible (grams)"
CLOSED = "E700 the depot is closed"
WRONG: Made = ({"order": "B1", "weight": 4.3}, ERROR)
RIGHT: Made = ({"order": "B1", "weight": 4300}, "")
IN_VAIN: Made = ({"order": "B1", "weight": 5200}, CLOSED)  # as the line tells, and failed


class Work:
    """Conversations that use a tool, recorded as they happen, and summaries between them."""

    def __init__(self, make_app: Callable[..., Any], *overrides: str, **given_: Any) -> None:
        self.clock = ManualClock()
        self.app = make_app(*overrides, clock=self.clock, **given_)
        self._talks = 0

    async def talk(self, *calls: Made, tool: str = "book", name: str = "", seconds: float = 0.0) -> None:
        """`seconds`: how much earlier than now the calls were made."""
        self._talks += 1
        for given_, error in calls:
            self.clock.advance(1)
            call = {
                "tool_name": tool,
                "input": given_,
                "output": error or '{"status": "booked"}',
                "success": not error,
                "create_time": (self.clock.now() - timedelta(seconds=seconds)).isoformat(),
                "metadata": {"conversation_id": name or f"talk{self._talks}"},
            }
            told = await self.app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=[call])
            assert told.success
        self.clock.advance(1)

    async def taught(self) -> None:
        """A failure and its way out, and the card that tells of it."""
        await self.talk(WRONG, RIGHT)
        await self.summarize()

    async def summarize(self, tool: str = "book", **more: Any) -> Guidance:
        self.clock.advance(1)
        told = await self.app.run_flow("summary_tool_memory", workspace_id="team", tool_names=[tool], **more)
        assert told.success, told
        self.clock.advance(1)
        store = await self.app.services.store_named()
        (record,) = await store.records("team", [tool])
        assert record.guidance is not None
        return record.guidance

    async def line(self) -> Claim:
        return line_of(await self.summarize())


def line_of(guidance: Guidance, error: str = "implausible") -> Claim:
    """The line about the error."""
    kinds = ("failure", "withheld")
    return next(one for one in guidance.claims if one.kind in kinds and error in one.text)


def counts(line: Claim) -> tuple[int, int, int]:
    return line.counts.get("shown", 0), line.counts.get("followed", 0), line.counts.get("worked", 0)


# ---------------------------------------------------------------- counting


async def test_a_conversation_that_does_as_the_line_says_at_once_counts_as_shown_followed_and_worked(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(({"order": "B2", "weight": 120}, ""))
    assert counts(await work.line()) == (1, 1, 1)
    await work.talk(({"order": "B3", "weight": 77000}, ""))
    assert counts(await work.line()) == (2, 2, 2)


async def test_the_line_may_be_followed_after_its_error_came_once_more(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(({"order": "B2", "weight": 0.7}, ERROR), ({"order": "B2", "weight": 700}, ""))
    assert counts(await work.line()) == (1, 1, 1)


async def test_a_line_that_is_not_heeded_was_shown_and_no_more(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(({"order": "B2", "weight": 0.7}, ERROR), ({"order": "B2", "weight": 0.8}, ERROR))
    assert counts(await work.line()) == (1, 0, 0)


async def test_a_conversation_that_was_under_way_when_the_line_was_written_was_not_shown_it(make_app):
    work = Work(make_app)
    await work.talk(({"query": "B2"}, ""), tool="search", name="long")
    await work.taught()
    await work.talk(RIGHT, name="long")
    assert counts(await work.line()) == (0, 0, 0)


async def test_calls_that_were_made_before_the_line_was_written_and_came_in_later_were_not_shown_it(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(RIGHT, seconds=3600)
    assert counts(await work.line()) == (0, 0, 0)


async def test_another_tools_conversation_is_not_counted(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(({"order": "B2", "weight": 120}, ""), tool="send")
    await work.summarize("send")
    assert counts(line_of(await work.summarize(force=True))) == (0, 0, 0)


async def test_a_conversation_is_counted_once_however_many_summaries_read_it(make_app):
    work = Work(make_app)
    await work.taught()
    for _ in range(3):
        await work.talk(RIGHT, name="long")
        line = await work.line()
    assert counts(line) == (1, 1, 1)


async def test_where_no_guidance_is_handed_out_nothing_was_shown(make_app):
    work = Work(make_app, "guidance.max_tokens_prompt=0")
    await work.taught()
    await work.talk(RIGHT)
    assert counts(await work.line()) == (0, 0, 0)


async def test_a_parameter_that_the_line_says_to_leave_out_is_followed_after_the_error(make_app):
    work = Work(make_app)
    unknown = "E12 unknown parameter `fast`"
    await work.talk(({"order": "B1", "fast": True}, unknown), ({"order": "B1"}, ""))
    await work.summarize()
    await work.talk(({"order": "B2", "fast": True}, unknown), ({"order": "B2"}, ""))
    await work.talk(({"order": "B3"}, ""))  # it would have been left out anyway, for all that is known
    assert counts(line_of(await work.summarize(), "E12")) == (2, 1, 1)


# ---------------------------------------------------------------- withholding


async def test_a_line_that_was_followed_and_failed_twice_is_withheld_with_its_counts(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(IN_VAIN)
    first = await work.summarize()
    assert line_of(first).kind == "failure"
    assert counts(line_of(first)) == (1, 1, 0)
    await work.talk(IN_VAIN)
    second = await work.summarize()
    assert (line_of(second).kind, *counts(line_of(second))) == ("withheld", 2, 2, 0)
    assert "implausible" not in second.text
    assert line_of(second, "E700").kind == "failure"  # other lines stay


async def test_a_line_that_is_withheld_stays_withheld_and_no_answer_for_agents_holds_it(make_app):
    work = Work(make_app)
    await work.taught()
    for _ in range(2):
        await work.talk(IN_VAIN)
    await work.summarize()
    await work.talk(RIGHT)
    assert (await work.line()).kind == "withheld"
    told = await work.app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=["book"])
    assert "implausible" not in str(told.metadata["memory_list"][0]["metadata"]["claims"])
    assert "implausible" not in told.answer


async def test_one_success_keeps_the_line(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(RIGHT)
    for _ in range(3):
        await work.talk(IN_VAIN)
    line = await work.line()
    assert (line.kind, *counts(line)) == ("failure", 4, 4, 1)


async def test_a_failure_that_lies_with_the_service_is_not_the_lines(make_app):
    work = Work(make_app)
    await work.taught()
    for _ in range(3):
        await work.talk((RIGHT[0], "HTTP 503 Service Unavailable"))
    line = await work.line()
    assert (line.kind, *counts(line)) == ("failure", 3, 3, 0)


async def test_a_failure_about_another_parameter_is_not_the_lines(make_app):
    work = Work(make_app)
    await work.taught()
    for talk in range(3):
        await work.talk(({"order": f"X{talk}", "weight": 5200}, "E404 there is no such order"))
    line = await work.line()
    assert (line.kind, *counts(line)) == ("failure", 3, 3, 0)


async def test_with_a_model_as_writer_a_withheld_line_is_not_behind_its_text(make_app):
    reply = '```json\n{"summary": "s", "evaluation": "e", "score": 1.0}\n```'
    llm = ScriptedLLM(lambda prompt: reply if "```json" in prompt else "```txt\nBooks carriers.\n```")
    work = Work(make_app, llms={"default": llm})
    await work.taught()
    for place in range(3):
        await work.talk(IN_VAIN)
        guidance = await work.summarize()
        assert ("implausible" in guidance.text) == (place < 1)
        assert "Books carriers." in guidance.text


async def test_a_failure_that_the_conversation_got_past_with_the_change_is_not_the_lines(make_app):
    work = Work(make_app)
    await work.taught()
    for talk in range(3):
        await work.talk(IN_VAIN, ({"order": f"B{talk}", "weight": 5200, "day": "Tuesday"}, ""))
    line = await work.line()
    assert (line.kind, *counts(line)) == ("failure", 3, 3, 0)


async def test_a_line_that_tells_another_change_begins_anew(make_app):
    work = Work(make_app)
    await work.taught()
    for _ in range(2):
        await work.talk(IN_VAIN)
    await work.summarize()
    await work.talk(({"order": "B1", "weight": 4.3}, ERROR), ({"order": "B1", "weight": "4300"}, ""))
    line = await work.line()
    assert (line.kind, counts(line)) == ("failure", (0, 0, 0))
    assert '"4300"' in line.text


# ---------------------------------------------------------------- what is kept


def test_histories_that_were_stored_before_lines_were_counted_are_read() -> None:
    old = {"rules": 4, "since": START.isoformat(), "calls": 2, "last_seq": 2}
    assert RepairHistory.model_validate(old).proofs == ()


async def test_counts_go_on_in_a_store_that_was_opened_again(make_app):
    work = Work(make_app)
    await work.taught()
    await work.talk(RIGHT)
    before = await work.summarize()
    await work.app.close()
    work.app = make_app(clock=work.clock)
    await work.talk(RIGHT)
    assert (counts(line_of(before)), counts(await work.line())) == ((1, 1, 1), (2, 2, 2))


async def test_guidance_that_was_stored_before_is_counted_from_its_own_time_on(make_app):
    work = Work(make_app)
    await work.taught()
    store = await work.app.services.store_named()
    (record,) = await store.records("team", ["book"])
    assert record.guidance is not None
    assert record.guidance.history is not None
    assert record.guidance.history.proofs == ()
    await work.talk(RIGHT)
    assert counts(await work.line()) == (1, 1, 1)


# ---------------------------------------------------------------- for whatever calls

ANY_CALL = st.sampled_from([WRONG, RIGHT, IN_VAIN, (RIGHT[0], ERROR), ({"order": "B9"}, ""), ({}, "HTTP 503")])


def calls_of(talk: Sequence[Made], name: str, begin: float) -> list[ToolCallResult]:
    return [
        ToolCallResult(
            tool_name="book",
            id=f"{name}-{place}",
            seq=place + 1,
            input=given_,
            output=error or "fine",
            success=not error,
            create_time=START + timedelta(seconds=begin + place),
            metadata={"conversation_id": name},
        )
        for place, (given_, error) in enumerate(talk)
    ]


def written() -> Guidance:
    made = DataDrivenWriter().compose("book", calls_of([WRONG, RIGHT], "first", 0))
    return made.model_copy(update={"created_at": START + timedelta(seconds=60)})


def talks_of(every: Sequence[Sequence[Made]], begin: float = 100) -> list[Talk]:
    made = [calls_of(talk, f"t{place}", begin + 1000 * place) for place, talk in enumerate(every) if talk]
    return [Talk(calls[0].create_time, calls) for calls in made]


@given(st.lists(st.lists(ANY_CALL, max_size=5), max_size=6))
def test_no_line_was_followed_more_often_than_shown_nor_worked_more_often_than_followed(
    every: list[list[Made]],
) -> None:
    proved = with_proof(written(), "book", talks_of(every))
    assert proved.history is not None
    (proof,) = proved.history.proofs
    found = {"shown": 0, "followed": 0, "worked": 0, "failed": 0, **proof.counts}
    assert found["shown"] == sum(map(bool, every))
    assert found["shown"] >= found["followed"] >= found["worked"] + found["failed"]
    assert is_withheld(proof) == (found["failed"] > 1 and found["worked"] == 0)


@given(st.lists(st.lists(ANY_CALL, min_size=1, max_size=5), max_size=6))
def test_conversations_before_the_guidance_show_nothing(every: list[list[Made]]) -> None:
    proved = with_proof(written(), "book", [Talk(START, talk.calls) for talk in talks_of(every)])
    assert proved.history is not None
    assert [one.counts for one in proved.history.proofs] == [{}]


def test_many_long_conversations_are_counted_in_time_that_grows_with_the_calls() -> None:
    long = [WRONG, RIGHT] * 100
    assert takes_less_than(2.0, lambda: with_proof(written(), "book", talks_of([long] * 30)))


async def test_a_store_without_a_log_of_calls_summarizes_all_the_same(make_app, monkeypatch) -> None:
    monkeypatch.setattr(SqliteStore, "call_log", DecidedStore.call_log)  # as in a store that somebody wrote without one
    work = Work(make_app)
    await work.taught()
    await work.talk(WRONG, RIGHT)
    guidance = await work.summarize()
    assert "(2 calls)" in guidance.text
    assert not any("shown" in line.counts for line in guidance.claims)
