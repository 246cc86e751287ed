"""CallRecorder: what it sees of a function's calls."""

import asyncio
import functools

import pytest

from toolmem import CallDenied, CallRecorder, ToolMem
from toolmem.errors import RequestError


@pytest.fixture
def recorder(memory):
    return CallRecorder(memory)


def forbid(memory, tool, **test):
    memory.tool_rule_put(tool, "Never", effect="deny", when=[test])


def test_a_call_is_recorded_with_its_arguments_result_and_time(memory):
    recorder = CallRecorder()

    @recorder.tool
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        return a + b

    assert add(1) == 3
    [record] = recorder.take()
    assert (record["tool_name"], record["input"], record["output"]) == ("add", {"a": 1}, "3")
    assert record["success"] and record["time_cost"] >= 0
    assert add.__doc__ == "Adds two numbers." and recorder.take() == []


def test_an_error_is_recorded_and_goes_on(recorder, memory):
    @recorder.tool
    def fail() -> None:
        raise ValueError("nothing here")

    with pytest.raises(ValueError):
        fail()
    [record] = recorder.take()
    assert (record["success"], record["output"]) == (False, "ValueError: nothing here")
    memory.add([record])
    assert memory.calls()[0].conversation_id == recorder.conversation_id


def test_defaults_partials_and_keyword_arguments_that_name_a_target_are_seen(recorder, memory):
    forbid(memory, "send", target="sarah@")

    @recorder.tool
    def send(body: str, to: str = "sarah@example.com", **more: str) -> str:
        return "sent"

    with pytest.raises(CallDenied):
        send("hi")
    with pytest.raises(CallDenied):
        send("hi", to="bob@x.org", cc="sarah@example.com")
    assert send("hi", to="bob@x.org") == "sent"

    def send_to(to: str, body: str) -> str:
        return "sent"

    forbid(memory, "send_to", target="sarah@")
    bound = recorder.tool(functools.partial(send_to, "sarah@example.com"))
    with pytest.raises(CallDenied):
        bound(body="x")


def test_an_argument_that_cannot_be_shown_hides_no_other(recorder, memory):
    class Odd:
        def __str__(self):
            raise RuntimeError("no")

    forbid(memory, "send", target="sarah@")

    @recorder.tool
    def send(to: str, extra: object = None) -> str:
        return "sent"

    with pytest.raises(CallDenied):
        send("sarah@example.com", Odd())


def test_a_generator_is_refused(recorder):
    def rows():
        yield 1

    with pytest.raises(RequestError, match="generator"):
        recorder.tool(rows)


def test_a_method_is_recorded_without_its_object(recorder):
    class Box:
        @recorder.tool
        def put(self, what: str) -> str:
            return what

        @staticmethod
        @recorder.tool
        def look(what: str) -> str:
            return what

    Box().put("a")
    Box.look("b")
    assert [each["input"] for each in recorder.take()] == [{"what": "a"}, {"what": "b"}]


def test_a_cancelled_call_teaches_no_failure(recorder, memory):
    @recorder.tool
    async def wait(n: int) -> None:
        await asyncio.sleep(60)

    async def main():
        task = asyncio.ensure_future(wait(1))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    [record] = recorder.take()
    assert record["success"] is None
    assert recorder.check("wait", {"n": 1}).action == "allow"


def test_a_denied_call_is_in_no_figure(recorder, memory):
    forbid(memory, "pay", always=True)

    @recorder.tool
    def pay() -> str:
        return "paid"

    with pytest.raises(CallDenied):
        pay()
    added = memory.add(recorder.take())
    assert memory.calls() == [] and added.evaluation.evaluated == 0


def test_a_wrong_argument_is_refused_with_what_was_expected():
    of_recorder = {"on_denied": "maybe", "memory": "x", "tools": "send_email"}
    of_memory = {"path_or_config": 3, "overrides": "guard.rules=off"}
    for make, wrong in [(CallRecorder, of_recorder), (ToolMem, of_memory)]:
        for name, value in wrong.items():
            with pytest.raises(RequestError, match=f"^{name}: expected .* got "):
                make(**{name: value})
