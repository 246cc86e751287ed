"""Functions as tools: what is recorded of their calls, what a guard does with them, and what goes on unchanged."""

from __future__ import annotations

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import CallDenied, CallRecorder, ToolMemError
from toolmem.errors import RequestError
from toolmem.guard.conversation import CheckedCall, ConversationGuard
from toolmem.guard.decision import STOPPED, CheckedRule, GuardDecision


def binding(effect: str, target: str) -> dict[str, list[CheckedRule]]:
    """One rule on send_email, for calls with this target."""
    contains = {"type": "array", "contains": {"const": target}}
    when = {"type": "object", "required": ["targets"], "properties": {"targets": contains}}
    return {"send_email": [CheckedRule("r1", f"never email {target}", effect, when)]}


class OwnGuard:
    """A conversation's guard in memory, as the recorder wants it."""

    def __init__(self, bound: dict[str, list[CheckedRule]], **modes: Any) -> None:
        self.guard = ConversationGuard(bound, modes=modes)
        self.checked: dict[str, CheckedCall] = {}
        self.asked: list[dict[str, Any]] = []

    def before_now(self, tool_name: str, arguments: Any) -> GuardDecision:
        checked = self.guard.before(tool_name, arguments, force=None)
        self.asked.append(dict(arguments))
        self.checked[checked.decision.id] = checked
        return checked.decision

    def after_now(self, decision: GuardDecision, record: Any) -> None:
        if decision.stops:
            return
        self.guard.after(self.checked[decision.id], failed=not record["success"], output=record["output"])

    async def before(self, tool_name: str, arguments: Any) -> GuardDecision:
        await asyncio.sleep(0)
        return self.before_now(tool_name, arguments)

    async def after(self, decision: GuardDecision, record: Any) -> None:
        self.after_now(decision, record)


def held(effect: str = "deny", *, on_denied: Any = "raise", on_ask: Any = None, **modes: Any) -> CallRecorder:
    return CallRecorder._of(OwnGuard(binding(effect, "sarah@example.com"), **modes), on_denied, on_ask)


def mailing(recorder: CallRecorder, sent: list[str], *, as_async: bool) -> Any:
    """`send_email` decorated, called and waited for."""
    if not as_async:

        @recorder.tool
        def send_email(to: str, text: str = "") -> str:
            sent.append(to)
            return f"sent to {to}"

        return send_email

    async def send_email_later(to: str, text: str = "") -> str:
        await asyncio.sleep(0)
        sent.append(to)
        return f"sent to {to}"

    send_email_later.__name__ = "send_email"
    later = recorder.tool(send_email_later)
    return lambda *args, **kwargs: asyncio.run(later(*args, **kwargs))


both = pytest.mark.parametrize("as_async", [False, True], ids=["plain", "async"])


# ---------------------------------------------------------------- denied, asked, advised


@both
def test_a_denied_call_is_not_executed_and_says_why(as_async):
    recorder, sent = held(), []
    send_email = mailing(recorder, sent, as_async=as_async)
    assert send_email("bob@example.com") == "sent to bob@example.com"
    with pytest.raises(CallDenied, match=r"never email sarah@example\.com") as told:
        send_email(to="sarah@example.com", text="hi")
    assert sent == ["bob@example.com"]
    assert isinstance(told.value, ToolMemError)
    assert told.value.decision.action == "deny"
    assert str(told.value) == told.value.decision.reason
    assert str(told.value).startswith(STOPPED)


@both
def test_a_denied_call_is_recorded_as_one_that_did_not_run(as_async):
    recorder, sent = held(), []
    send_email = mailing(recorder, sent, as_async=as_async)
    with pytest.raises(CallDenied):
        send_email("sarah@example.com")
    (record,) = recorder.take()
    assert record["output"].startswith(STOPPED)
    assert record["input"] == {"to": "sarah@example.com"}
    assert "success" not in record
    assert "time_cost" not in record
    (decided,) = recorder.decisions
    assert decided.decision.action == "deny"
    assert decided.call_id == record["id"]


@both
def test_the_reason_may_be_the_tools_result(as_async):
    recorder, sent = held(on_denied="return"), []
    send_email = mailing(recorder, sent, as_async=as_async)
    assert send_email("sarah@example.com").startswith(STOPPED)
    assert not sent


def test_on_denied_is_raise_or_return():
    with pytest.raises(RequestError, match="on_denied: expected 'raise' or 'return', got 'ignore'"):
        held(on_denied="ignore")


@both
def test_where_nobody_can_be_asked_a_call_to_ask_about_is_denied_and_says_to_ask(as_async):
    recorder, sent = held("ask"), []
    with pytest.raises(CallDenied, match=f"{STOPPED}; ask the user first"):
        mailing(recorder, sent, as_async=as_async)("sarah@example.com")
    assert not sent


async def agrees(decision: GuardDecision) -> bool:
    await asyncio.sleep(0)
    return True


async def refuses(decision: GuardDecision) -> bool:
    return False


def fails(decision: GuardDecision) -> bool:
    raise OSError("no terminal")


@both
@pytest.mark.parametrize("on_ask", [lambda decision: True, agrees], ids=["plain", "async"])
def test_a_call_that_the_user_agrees_to_runs(as_async, on_ask):
    recorder, sent = held("ask", on_ask=on_ask), []
    assert mailing(recorder, sent, as_async=as_async)("sarah@example.com") == "sent to sarah@example.com"
    assert sent == ["sarah@example.com"]
    (decided,) = recorder.decisions
    assert [source.rule_id for source in decided.decision.sources] == ["r1"]


@both
@pytest.mark.parametrize(
    "on_ask", [lambda decision: False, refuses, fails, lambda decision: None, lambda decision: "no"]
)
def test_whatever_is_no_consent_stops_the_call(as_async, on_ask):
    recorder, sent = held("ask", on_ask=on_ask), []
    with pytest.raises(CallDenied, match=f"{STOPPED}. The user"):
        mailing(recorder, sent, as_async=as_async)("sarah@example.com")
    assert not sent


@both
def test_nobody_is_asked_about_a_call_that_is_denied_or_free(as_async):
    asked: list[GuardDecision] = []
    recorder, sent = held("deny", on_ask=lambda decision: bool(asked.append(decision)) or True), []
    send_email = mailing(recorder, sent, as_async=as_async)
    send_email("bob@example.com")
    with pytest.raises(CallDenied):
        send_email("sarah@example.com")
    assert not asked


async def test_a_plain_tool_inside_a_running_loop_can_ask_by_an_async_function():
    recorder, sent = held("ask", on_ask=agrees), []
    mailing(recorder, sent, as_async=False)("sarah@example.com")
    assert sent == ["sarah@example.com"]


@both
def test_advice_is_kept_and_the_call_runs(as_async):
    recorder, sent = held(rules="advise"), []
    mailing(recorder, sent, as_async=as_async)("sarah@example.com")
    assert sent == ["sarah@example.com"]
    (decided,) = recorder.decisions
    assert "never email sarah@example.com" in decided.decision.advice
    assert decided.tool_name == "send_email"


@both
def test_a_failure_is_learned_within_the_turn_and_its_repeat_denied_where_that_is_enforced(as_async):
    recorder, tries = held(repeats="enforce"), []

    def search(q: str) -> str:
        tries.append(q)
        raise ValueError(f"no such index: {q}")

    async def search_later(q: str) -> str:
        return search(q)

    search_later.__name__ = "search"
    later = recorder.tool(search_later)
    tool = (lambda q: asyncio.run(later(q))) if as_async else recorder.tool(search)
    with pytest.raises(ValueError, match="no such index: rain"):
        tool("rain")
    with pytest.raises(CallDenied, match="failed once in this conversation"):
        tool("rain")
    with pytest.raises(ValueError, match="no such index: rain"):
        tool("rain")  # sent unchanged once more: forced
    assert tries == ["rain", "rain"]


# ---------------------------------------------------------------- what the guard is shown


def test_a_default_that_names_a_forbidden_target_is_seen():
    recorder, sent = held(), []

    @recorder.tool
    def send_email(text: str, to: str = "sarah@example.com", cc: str | None = None) -> None:
        sent.append(to)

    with pytest.raises(CallDenied):
        send_email("hi")
    assert not sent
    assert recorder._checks.asked == [{"text": "hi", "to": "sarah@example.com"}]
    assert recorder.take()[0]["input"] == {"text": "hi"}


def test_what_a_partial_presets_is_part_of_the_call():
    recorder, sent = held(), []

    def send_email(to: str, text: str) -> None:
        sent.append(to)

    tool = recorder.tool(functools.partial(send_email, "sarah@example.com"))
    assert tool.__name__ == "send_email"
    with pytest.raises(CallDenied):
        tool(text="hi")
    assert not sent
    assert recorder.take()[0]["input"] == {"to": "sarah@example.com", "text": "hi"}


def test_names_beside_the_parameters_are_seen_by_their_name():
    recorder, sent = held(), []

    @recorder.tool
    def send_email(**fields: Any) -> None:
        sent.append(fields)

    with pytest.raises(CallDenied):
        send_email(to="sarah@example.com")
    assert recorder._checks.asked == [{"to": "sarah@example.com"}]


class Unshowable:
    """An object of a program."""

    def __str__(self) -> str:
        raise RuntimeError("not now")

    __repr__ = __str__


def nested(levels: int) -> list[Any]:
    outer: list[Any] = []
    for _ in range(levels):
        outer = [outer]
    return outer


@pytest.mark.parametrize(
    "odd",
    [float("nan"), float("inf"), {1, 2}, b"\xff", object(), "\ud800", Unshowable(), nested(50), nested(50_000)],
    ids=["nan", "inf", "set", "bytes", "object", "surrogate", "unshowable", "deep", "no json"],
)
def test_an_argument_that_json_has_no_word_for_hides_no_other(odd):
    recorder, sent = held(), []

    @recorder.tool
    def send_email(to: str, weight: Any) -> None:
        sent.append(to)

    with pytest.raises(CallDenied):
        send_email("sarah@example.com", odd)
    send_email("bob@example.com", odd)
    assert recorder.tool(lambda: odd)() is odd
    assert [record["tool_name"] for record in recorder.take()] == ["send_email", "send_email", "<lambda>"]


def test_a_call_whose_argument_is_nested_too_deeply_to_be_read_is_asked_about():
    recorder, sent = held(), []

    @recorder.tool
    def send_email(to: str, parts: Any) -> None:
        sent.append(to)

    with pytest.raises(CallDenied, match=r"ask the user first.*too deeply nested"):
        send_email("bob@example.com", nested(200))
    assert not sent


def test_an_argument_that_holds_itself_hides_no_other():
    recorder = held()
    loop: list[Any] = []
    loop.append(loop)

    @recorder.tool
    def send_email(to: str, parts: Any) -> None: ...

    with pytest.raises(CallDenied):
        send_email("sarah@example.com", loop)
    send_email("bob@example.com", loop)


def test_a_call_with_wrong_arguments_is_recorded_and_fails_as_the_function_says():
    recorder = held()

    @recorder.tool
    def send_email(to: str) -> None: ...

    with pytest.raises(TypeError, match="unexpected keyword argument 'nobody'"):
        send_email(nobody=1)
    (record,) = recorder.take()
    assert record["success"] is False


@given(
    st.dictionaries(st.text(max_size=8).filter(str.isidentifier), st.from_type(object) | st.text(), max_size=4),
    st.booleans(),
)
def test_whatever_stands_beside_a_target_the_forbidden_one_stops_the_call_and_any_other_runs_it_unchanged(more, stops):
    recorder = held()
    more = {name: value for name, value in more.items() if name not in ("to", "self", "cls")}
    given_to: list[dict[str, Any]] = []

    @recorder.tool
    def send_email(to: str, **others: Any) -> Any:
        given_to.append(others)
        return others

    if stops:
        with pytest.raises(CallDenied):
            send_email("sarah@example.com", **more)
        assert not given_to
    else:
        returned = send_email("bob@example.com", **more)
        assert returned is given_to[0]
        assert all(given_to[0][name] is value for name, value in more.items())
    assert len(recorder.take()) == 1


# ---------------------------------------------------------------- every kind of function


@pytest.mark.parametrize("recorder", [CallRecorder(), held()], ids=["recording", "held"])
def test_a_tool_without_parameters_runs_and_is_recorded(recorder):
    @recorder.tool
    def now() -> str:
        """The time."""
        return "noon"

    assert now() == "noon"
    assert now.__doc__ == "The time."
    (record,) = recorder.take()
    assert (record["tool_name"], record["input"], record["output"]) == ("now", {}, "noon")


def test_methods_are_recorded_without_the_object_they_belong_to():
    recorder = held()

    class Mailer:
        @recorder.tool
        def send(self, to: str) -> str:
            return f"{to} {type(self).__name__}"

        @recorder.tool
        @classmethod
        def count(cls, of: str) -> str:
            return f"{of} {cls.__name__}"

        @classmethod
        @recorder.tool
        def count_again(cls, of: str) -> str:
            return f"{of} {cls.__name__}"

        @recorder.tool
        @staticmethod
        def check(self: str) -> str:
            return self

        def bound(self, to: str) -> str:
            return to

    mailer = Mailer()
    assert mailer.send("bob") == "bob Mailer"
    assert Mailer.count("x") == mailer.count_again("x") == "x Mailer"
    assert recorder.tool(mailer.bound)("bob") == "bob"
    inputs = [(record["tool_name"], record["input"]) for record in recorder.take()]
    assert inputs == [
        ("send", {"to": "bob"}),
        ("count", {"of": "x"}),
        ("count_again", {"of": "x"}),
        ("bound", {"to": "bob"}),
    ]


def test_an_object_that_can_be_called_is_a_tool():
    recorder = held()

    class Search:
        def __call__(self, q: str) -> str:
            return q

    class SearchLater:
        async def __call__(self, q: str) -> str:
            return q

    assert recorder.tool(Search())("rain") == "rain"
    assert asyncio.run(recorder.tool(SearchLater())("rain")) == "rain"
    assert [record["output"] for record in recorder.take()] == ["rain", "rain"]


async def test_a_plain_function_that_hands_on_an_async_one_is_recorded_when_that_ends():
    recorder = held()

    async def search(q: str) -> str:
        await asyncio.sleep(0)
        return q

    assert await recorder.tool(lambda q: search(q))("rain") == "rain"
    assert await recorder.tool(functools.partial(search, q="wind"))() == "wind"
    assert [record["output"] for record in recorder.take()] == ["rain", "wind"]


def test_generator_functions_are_refused_with_the_remedy():
    def pages(q: str) -> Any:
        yield q

    async def pages_later(q: str) -> Any:
        yield q

    for function in (pages, pages_later, functools.partial(pages, "x")):
        with pytest.raises(RequestError, match="decorate the function that reads it to its end"):
            CallRecorder().tool(function)


# ---------------------------------------------------------------- errors, interrupts, many at once


class OwnError(Exception):
    """A tool's own."""


@both
def test_a_tools_error_reaches_the_caller_as_the_object_that_it_was(as_async):
    recorder, error = held(), OwnError("full")

    def send_email(to: str) -> None:
        raise error

    async def send_email_later(to: str) -> None:
        raise error

    send_email_later.__name__ = "send_email"
    later = recorder.tool(send_email_later)
    tool = (lambda to: asyncio.run(later(to))) if as_async else recorder.tool(send_email)
    with pytest.raises(OwnError) as told:
        tool("bob@example.com")
    assert told.value is error
    assert told.value.__context__ is None
    (record,) = recorder.take()
    assert (record["output"], record["success"]) == ("OwnError: full", False)


async def test_an_interrupted_call_is_recorded_and_no_failure_is_held_against_its_repeat():
    recorder = held(repeats="enforce")

    @recorder.tool
    async def search(q: str) -> str:
        await asyncio.sleep(3600 if not recorder.take() else 0)
        return q

    task = asyncio.ensure_future(search("rain"))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder._calls[0]["output"] == "CancelledError: the call was interrupted"
    assert await search("rain") == "rain"


async def test_calls_at_once_are_each_decided_and_recorded_once():
    recorder, sent = held(), []

    @recorder.tool
    async def send_email(to: str) -> str:
        await asyncio.sleep(0)
        sent.append(to)
        return to

    targets = ["sarah@example.com" if n % 2 else f"bob{n}@example.com" for n in range(100)]
    results = await asyncio.gather(*map(send_email, targets), return_exceptions=True)
    assert [isinstance(result, CallDenied) for result in results] == [bool(n % 2) for n in range(100)]
    assert sorted(sent) == sorted(targets[::2])
    assert len(recorder.take()) == 100
    assert len(recorder.decisions) == 50


def test_calls_of_many_threads_lose_no_record():
    recorder = CallRecorder()
    taken: list[dict[str, Any]] = []
    done = threading.Event()

    @recorder.tool
    def count(n: int) -> int:
        return n

    def collect() -> None:
        while not done.is_set():
            taken.extend(recorder.take())

    collecting = threading.Thread(target=collect)
    collecting.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(2000)))
    done.set()
    collecting.join()
    taken += recorder.take()
    assert sorted(record["input"]["n"] for record in taken) == list(range(2000))


def test_a_recorder_without_a_memory_only_records():
    recorder = CallRecorder()

    @recorder.tool
    def send_email(to: str) -> str:
        return "sent"

    send_email("sarah@example.com")
    (record,) = recorder.take("c1")
    assert record.keys() == {"tool_name", "input", "create_time", "output", "success", "time_cost", "conversation_id"}
    assert not recorder.decisions
