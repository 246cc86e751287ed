"""A line of guidance that was taken away does not come back from the same evidence."""

from __future__ import annotations

import shutil
from itertools import count
from typing import Any

import pytest
from model_settings import NO_WAIT

from toolmem import ToolMem
from toolmem.errors import Conflict, RequestError
from toolmem.guidance.card import CardWriter
from toolmem.models.guidance import Guidance, Line
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.scripted import ScriptedModel

LIMIT = "Error: limit must be at most 10"
talks = count()


def call(given: dict[str, Any], error: str = "", talk: str = "", tool: str = "search") -> Any:
    return {
        "tool_name": tool,
        "input": given,
        "output": error or '{"hits": 3}',
        "success": not error,
        "conversation_id": talk or str(next(talks)),
    }


def repaired(
    wrong: dict[str, Any], right: dict[str, Any], error: str = LIMIT, tool: str = "search"
) -> list[Any]:
    talk = str(next(talks))
    return [call(wrong, error, talk, tool), call(right, "", talk, tool)]


def lesson(number: int) -> list[Any]:
    """The same lesson, from another conversation."""
    q = f"query {number}"
    return repaired({"q": q, "limit": 50}, {"q": q, "limit": 10})


def lines(memory: Any, tool: str = "search") -> list[str]:
    text = next(each.guidance for each in memory.tools() if each.tool_name == tool)
    return [line.removeprefix("- ") for line in text.splitlines() if not line.startswith("#")]


def forget(memory: Any, part: str, tool: str = "search") -> str:
    """Take away the line that holds `part`."""
    number = next(n for n, line in enumerate(lines(memory, tool), 1) if part in line)
    return memory.forget_guidance_line(tool, number)


def told(memory: Any, *calls: Any, tool: str = "search", force: bool = False) -> str:
    memory.add(list(calls))
    memory.summarize(force=force)
    return "\n".join(lines(memory, tool))


# ---------------- the card


def test_the_same_lesson_counted_again_stays_away(memory):
    before = told(memory, *lesson(1), *lesson(2))
    assert "limit must be" in before
    gone = forget(memory, "limit must be")
    assert gone.startswith('failed: {"limit": 50}') and gone in before
    assert "limit must be" not in "\n".join(lines(memory))
    assert "limit must be" not in told(memory, force=True)
    for number in range(3, 7):
        assert "limit must be" not in told(memory, *lesson(number))
    assert "limit must be" not in told(memory, call({"q": "x", "limit": 99}, LIMIT))


@pytest.mark.parametrize(
    ("wrong", "right", "other", "error"),
    [
        ({"unit": "k"}, {"unit": "C"}, {"unit": "Kelvin"}, "bad unit"),
        # What was counted first is the smaller change, and yet the other one is told.
        (
            {"form": "3May"},
            {"form": "2026-05-03"},
            {"form": "03.05.2026", "locale": "de"},
            "cannot read the form",
        ),
        ({"raw": True}, {}, {"raw": True, "depth": "low"}, "too big"),
    ],
)
def test_another_lesson_of_the_same_error_is_told(memory, wrong, right, other, error):
    wrong, right, other = ({"q": "a", **each} for each in (wrong, right, other))
    error = f"Error: {error}"
    told(memory, *repaired(wrong, right, error))
    forget(memory, error.removeprefix("Error: "))
    assert error[7:] not in told(memory, *repaired(wrong, right, error))
    after = told(memory, *repaired(wrong, other, error))
    assert error[7:] in after
    assert "(3 calls); 1 of these then worked" in after  # the lesson that is gone counts no more


def test_the_error_alone_does_not_follow_its_wrong_repair(memory):
    error = "Error: no such page"
    told(memory, *repaired({"q": "a", "page": 7}, {"q": "a", "page": 3}, error))
    forget(memory, "no such page")
    assert "no such page" not in told(memory, call({"q": "b", "page": 8}, error))


def test_a_failure_without_any_output_stays_away_too(memory):
    def silent(query: str) -> Any:
        return {**call({"q": query}, "x"), "output": ""}

    assert "no output" in told(memory, silent("a"), silent("b"))
    forget(memory, "no output")
    assert "no output" not in told(memory, silent("c"))


def test_the_same_error_of_another_program_keeps_its_line(memory):
    error = "permission denied"
    text = told(
        memory,
        call({"command": "docker ps"}, error, tool="sh"),
        call({"command": "git pull"}, error, tool="sh"),
        *(call({"command": f"ls d{n}"}, tool="sh") for n in range(9)),
        tool="sh",
    )
    assert text.count(error) == 2
    forget(memory, "docker", "sh")
    after = told(memory, call({"command": "docker ps -a"}, error, tool="sh"), tool="sh")
    assert error in after and "docker" not in after


def test_a_rate_stays_away_whatever_its_numbers_are(memory):
    text = told(memory, *(call({"q": "a"}, "Error: closed") for _ in range(3)), call({"q": "b"}))
    assert "1 of the 4 newest calls worked" in text
    assert forget(memory, "calls worked") == "1 of the 4 newest calls worked"
    assert "calls worked" not in told(memory, call({"q": "c"}), call({"q": "d"}))


def test_an_example_that_was_taken_away_makes_room_for_another_call(memory):
    told(memory, call({"q": "secret plan"}))
    forget(memory, "secret plan")
    assert lines(memory) == []
    assert "secret plan" not in told(memory, call({"q": "secret plan"}))
    assert 'worked: {"q": "rain"}' in told(memory, call({"q": "rain"}))


def test_a_line_that_had_no_room_takes_the_place(path):
    with ToolMem(path, overrides=["guidance.max_tokens=60"]) as memory:
        error = "Error: the {} of this index is closed for searches today"
        kinds = ("shard", "mirror", "replica", "archive")
        text = told(memory, *(call({"q": "x"}, error.format(each)) for each in kinds))
        shown = [each for each in kinds if f"the {each} of" in text]
        assert 0 < len(shown) < 4
        forget(memory, f"the {shown[0]} of")
        after = told(memory, force=True)
        assert f"the {shown[0]} of" not in after
        assert any(f"the {each} of" in after for each in kinds if each not in shown)


def test_the_language_of_a_card_does_not_bring_a_line_back(path):
    with ToolMem(path) as memory:
        told(memory, *lesson(1), call({"q": "x"}, "Error: the index is closed"))
        for part in ("limit must be", "index is closed", "calls worked"):
            forget(memory, part)
    with ToolMem(path, overrides=["language=zh"]) as memory:
        after = told(memory, *lesson(2), call({"q": "x"}, "Error: the index is closed"))
        assert after.splitlines() == ['成功：{"q": "query 2", "limit": 10} -> {"hits": 3}']


def test_advice_does_not_tell_a_lesson_that_was_taken_away(memory):
    told(memory, *lesson(1), *lesson(2))
    given = {"q": "z", "limit": 70}
    assert "then worked" in memory.advise("search", given, error=LIMIT).text
    forget(memory, "limit must be")
    assert "then worked" not in memory.advise("search", given, error=LIMIT).text
    told(memory, *lesson(3), *repaired({"q": "y", "limit": 60}, {"q": "y", "limit": 6}))
    assert '"limit": 6' in memory.advise("search", given, error=LIMIT).text


def test_a_query_no_longer_finds_the_words_of_the_line(memory):
    told(memory, *repaired({"q": "a", "zone": "x"}, {"q": "a"}, "Error: zeppelin hangar"))
    store = memory.services.store()
    assert store.search("default", None, "zeppelin", None, 5)
    forget(memory, "zeppelin")
    assert not store.search("default", None, "zeppelin", None, 5)


# ---------------- other writers


@pytest.mark.parametrize("policy", ["smart_skip", "incremental"])
def test_a_line_of_a_model_stays_away_whatever_it_counts(path, policy):
    prompts: list[str] = []

    def reply(prompt: str) -> str:
        if "```txt" not in prompt:
            return '```json\n{"summary": "s", "evaluation": "e", "score": 1.0}\n```'
        prompts.append(prompt)
        wrong = f"- Shout the query: {len(prompts)} of {9 + len(prompts)} calls did."
        return f"```txt\nQueries are short.\n{wrong}\n- At most {10 * len(prompts)} hits.\n```"

    settings = [*NO_WAIT, f"op.summary_tool_memory_op.params.policy={policy}"]
    with ToolMem(path, llms={"default": ScriptedModel(reply)}, overrides=settings) as memory:
        told(memory, *lesson(1))
        assert forget(memory, "Shout") == "Shout the query: 1 of 10 calls did."
        forget(memory, "Statistics")
        after = told(memory, *lesson(2))
        assert "Shout" not in after and "Statistics" not in after and "Shout" not in prompts[-1]
        assert lines(memory)[:2] == ["Queries are short.", "At most 20 hits."]
        forget(memory, "At most 20 hits")  # another number is another lesson
        assert "At most 30 hits" in told(memory, *lesson(3))


def test_the_card_below_a_models_text_stays_away_too(path):
    def reply(prompt: str) -> str:
        is_guidance = "```txt" in prompt
        return "```txt\nBe brief.\n```" if is_guidance else '{"summary": "s", "score": 0.0}'

    with ToolMem(path, llms={"default": ScriptedModel(reply)}, overrides=NO_WAIT) as memory:
        assert "limit must be" in told(memory, *lesson(1))
        forget(memory, "limit must be")
        assert "limit must be" not in told(memory, *lesson(2))


def test_a_writer_of_ones_own_needs_no_care_for_it(path):
    class Writer(CardWriter):
        author = "own/1"

        def write(self, tool_name: str, calls: Any, old: Guidance | None) -> Guidance:
            texts = ("Ask for one thing", "Say please")
            own = [Line(text, "failure", k=1, n=2, call_ids=("a",)) for text in texts]
            text = "# Manners\n\n- Ask for one thing\n- Say please\n\n# Rest\n\nNothing else"
            return Guidance(text=text, lines=own, author=self.author)

    with ToolMem(path, writers={"default": Writer()}) as memory:
        told(memory, call({"q": "a"}))
        assert memory.forget_guidance_line("search", 2) == "Say please"
        told(memory, call({"q": "b"}))
        assert lines(memory) == ["Ask for one thing", "Nothing else"]
        memory.forget_guidance_line("search", 1)
        assert memory.tools()[0].guidance == "# Rest\nNothing else"
        assert memory.services.store().records("default")[0].guidance.lines == []


# ---------------- what else is kept


def test_it_takes_nothing_else_away(memory):
    told(memory, *lesson(1), *lesson(2))
    memory.add(lesson(3))
    seen = memory.calls()[0].seq
    (before,) = memory.services.store().records("default")
    memory.services.store().update_verdicts("default", "search", {seen: memory.calls()[0]})
    (new,) = [record.new for record in memory.services.store().records("default")]
    forget(memory, "limit must be")
    (after,) = memory.services.store().records("default")
    assert after.new == new and seen in new  # a call that was judged again is summarized again
    assert after.guidance.created_at == before.guidance.created_at
    assert after.counters == before.counters


def test_a_summary_that_runs_meanwhile_does_not_write_it_again(path):
    class Writer(CardWriter):
        forgets = False

        def write(self, tool_name: str, calls: Any, old: Guidance | None) -> Guidance:
            if Writer.forgets:
                Writer.forgets = False
                forget(memory, "limit must be")
            return super().write(tool_name, calls, old)

    writer = Writer()
    with ToolMem(path, writers={"default": writer}) as memory:
        told(memory, *lesson(1))
        Writer.forgets = True
        after = told(memory, *lesson(2))
        assert "limit must be" not in after and "worked: " in after
        assert memory.summarize().skipped == ["search"]


class BusyStore(SqliteStore):
    """Others summarize just before guidance is written."""

    meanwhile: Any = None

    def put_guidance(self, *args: Any, **given: Any) -> Any:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        return super().put_guidance(*args, **given)


def test_a_summary_that_comes_first_is_kept_and_the_line_meant_is_taken_away(path):
    store = BusyStore(path)
    with ToolMem(path, stores={"default": store}) as memory:
        told(memory, *lesson(1))

        def summarize() -> None:
            # Another error is told first from now on, so that the numbers change.
            told(memory, *(call({"q": "x"}, "Error: the index is closed") for _ in range(9)))

        store.meanwhile = summarize
        assert "limit must be" in forget(memory, "limit must be")
        after = lines(memory)
        assert "index is closed" in after[0] and "limit must be" not in "\n".join(after)


def test_it_gives_up_where_others_go_on_writing(path):
    class Beaten(SqliteStore):
        is_beaten = False

        def put_guidance(self, *args: Any, **given: Any) -> Any:
            if self.is_beaten:
                raise Conflict("changed")
            return super().put_guidance(*args, **given)

    store = Beaten(path)
    with ToolMem(path, stores={"default": store}) as memory:
        before = told(memory, *lesson(1))
        store.is_beaten = True
        with pytest.raises(Conflict, match="run it again"):
            memory.forget_guidance_line("search", 1)
        assert "\n".join(lines(memory)) == before


@pytest.mark.parametrize(
    ("tool", "number", "problem"),
    [
        ("serach", 1, "no tool is called 'serach' .did you mean 'search'"),
        ("new", 1, "tool 'new' has no guidance yet: .toolmem run summary"),
        ("search", 9, "line: 9; .*'search' has 3 line"),
        ("search", 0, "line: expected `int` >= 1"),
    ],
)
def test_what_cannot_be_taken_away_is_told_with_the_remedy(memory, tool, number, problem):
    told(memory, *lesson(1))
    memory.add([call({"q": "a"}, tool="new")])
    with pytest.raises(RequestError, match=problem):
        memory.forget_guidance_line(tool, number)


def test_a_copy_of_the_store_forgets_as_well(tmp_path, memory):
    told(memory, *lesson(1))
    forget(memory, "limit must be")
    folder = [f"dump_dir={tmp_path}"]
    with ToolMem(memory.services.store().location, overrides=folder) as again:
        again.run("vector_store", action="dump", path="team.jsonl")
    with ToolMem(str(tmp_path / "copy.db"), overrides=folder) as copy:
        copy.run("vector_store", action="load", path="team.jsonl")
        assert "worked" in "\n".join(lines(copy))
        assert "limit must be" not in told(copy, *lesson(2))


def test_a_store_need_not_be_trusted_to_take_a_line_away(tmp_path, path):
    with ToolMem(path) as memory:
        told(memory, *lesson(1))
    copied = shutil.copy(path, tmp_path / "cloned.db")
    with ToolMem(copied) as memory:
        assert "limit must be" in forget(memory, "limit must be")
        assert "limit must be" not in told(memory, *lesson(2))


def test_the_newest_lines_that_were_taken_away_are_kept_in_mind(memory):
    told(memory, call({"q": 0}))
    for number in range(1, 230):
        forget(memory, "worked")
        told(memory, call({"q": number}))
    (record,) = memory.services.store().records("default")
    assert len(record.guidance.forgotten) == 200
    assert "worked" not in told(memory, call({"q": 228}), call({"q": 228}))
