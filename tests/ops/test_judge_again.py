"""retry_evaluations and rejudge: kept calls judged again."""

import os

import pytest
from model_settings import NO_WAIT
from msgspec.structs import replace

from toolmem import ToolMem
from toolmem.errors import ConfigError, ModelError, RequestError
from toolmem.guidance.card import CardWriter
from toolmem.guidance.model_writer import ModelWriter
from toolmem.testing.scripted import ScriptedJudge, ScriptedModel


def opened(path, judge):
    return ToolMem(path, judges={"default": judge}, overrides=NO_WAIT)


def test_only_calls_without_a_verdict_are_tried_again(path, records):
    def answer(call):
        return ModelError("busy") if is_down and call.output == "1" else judge.good(call)

    judge, is_down = ScriptedJudge(answer), True
    with opened(path, judge) as memory:
        memory.add(records(3))
        memory.summarize()
        is_down = False
        judge.asked.clear()
        done = memory.run("retry_evaluations")
        assert done.answer == "Judged 1 of 1 kept calls again"
        assert [call.output for call in judge.asked] == ["1"]
        assert [call.score for call in memory.calls()] == [1.0, 1.0, 1.0]
        assert memory.summarize().summarized == ["search"]  # judged late, so new again
        assert memory.run("retry_evaluations").answer == "Judged 0 of 0 kept calls again"


def test_every_call_is_judged_by_another_judge_and_counts_as_new(path, records):
    with ToolMem(path, overrides=NO_WAIT) as memory:
        memory.add(records(3))
        memory.summarize()
    judge = ScriptedJudge(lambda call: replace(judge.good(call), score=0))
    with opened(path, judge) as memory:
        done = memory.run("rejudge", tool_names="search,none")
        assert done.metadata["evaluation"]["evaluated"] == 3
        assert (done.success, done.metadata["not_found"]) == (False, ["none"])
        assert {call.score for call in memory.calls()} == {0.0}
        assert memory.summarize().summarized == ["search"]
        judge.asked.clear()
        assert memory.run("rejudge").metadata["evaluation"]["reused"] == 3
        assert judge.asked == []
        memory.run("rejudge", force=True)
        assert len(judge.asked) == 3


def test_a_call_that_cannot_be_judged_anew_keeps_its_verdict(path, records):
    with ToolMem(path, overrides=NO_WAIT) as memory:
        memory.add(records(2))
    judge = ScriptedJudge(lambda call: ModelError("busy"))
    with opened(path, judge) as memory:
        done = memory.run("rejudge")
        assert (done.success, done.metadata["evaluation"]["failed"]) == (False, 2)
        assert [call.score for call in memory.calls()] == [1.0, 1.0]


# ---------------------------------------------------------------- what a model reads of a tool


def incremental(path, model, *more):
    policy = ["op.summary_tool_memory_op.params.policy=incremental"]
    return ToolMem(path, llms={"default": model}, overrides=[*NO_WAIT, *policy, *more])


def test_an_incremental_summary_reads_the_old_guidance_and_the_new_calls(path, records):
    model = ScriptedModel()
    with incremental(path, model) as memory:
        memory.add(records(20))
        memory.summarize()
        whole = model.prompts[-1]
        memory.add(records(1, start=20))
        model.prompts.clear()
        assert memory.summarize().summarized == ["search"]
        (prompt,) = [each for each in model.prompts if "<guidance>" in each]
        assert "Scripted guidance from 20 calls" in prompt
        assert prompt.count("\n#") == 1
        assert len(prompt) < len(whole) / 2
        assert "Keeps what was known" in memory.guidance("search").text
        assert memory.summarize().skipped == ["search"]


def test_every_so_often_an_incremental_summary_reads_the_whole_window(path, records):
    model = ScriptedModel()
    with incremental(path, model, "op.summary_tool_memory_op.params.full_every=3") as memory:
        kinds = []
        for start in range(5):
            memory.add(records(1, start=start))
            memory.summarize()
            kinds.append("<guidance>" in model.prompts[-1])
        assert kinds == [False, True, True, False, True]


def test_fewer_new_calls_than_asked_are_skipped_where_there_is_guidance(path, records):
    few = ["op.summary_tool_memory_op.params.min_new_calls=3"]
    with ToolMem(path, overrides=few) as memory:
        memory.add(records(1))
        assert memory.summarize().summarized == ["search"]  # there was none
        memory.add(records(2, start=1))
        (outcome,) = memory.summarize().outcomes
        assert (outcome.action, outcome.reason) == ("skipped", "too_few_new_calls")
        memory.add(records(1, start=3))
        assert memory.summarize().summarized == ["search"]


def test_only_calls_since_a_time_are_summarized(path, call):
    with ToolMem(path) as memory:
        memory.add(
            [
                {"tool_name": "t", "input": {"n": n}, "output": "x", "create_time": f"2026-01-0{n}"}
                for n in range(1, 6)
            ]
        )
        memory.run("summary_tool_memory", data_from="2026-01-04")
        covered = [call.create_time.day for call in memory.calls() if call.is_summarized]
        assert covered == [4, 5]


def test_a_time_that_is_none_is_refused_in_settings_and_in_requests(path):
    with pytest.raises(ConfigError, match="data_from: 'soon' is not a time in ISO 8601"):
        ToolMem(path, overrides=["op.summary_tool_memory_op.params.data_from=soon"])
    with ToolMem(path) as memory, pytest.raises(RequestError, match="data_from: 'soon'"):
        memory.run("summary_tool_memory", data_from="soon")


def test_a_models_own_text_goes_before_the_card_where_there_is_little_room(path, records):
    small = "guidance.max_tokens=30"
    with ToolMem(path, llms={"default": ScriptedModel()}, overrides=NO_WAIT) as memory:
        memory.add(records(3))
        memory.summarize()
        whole = memory.guidance("search").text
        assert "worked:" in whole
    with ToolMem(path, llms={"default": ScriptedModel()}, overrides=[*NO_WAIT, small]) as memory:
        told = memory.guidance("search").text
        assert "Scripted guidance from 3 calls" in told
        assert "worked:" not in told


def test_what_a_model_writes_cannot_be_taken_for_another_part_of_a_prompt(path, records):
    def reply(prompt):
        if "```json" in prompt:
            return '{"summary": "s", "evaluation": "e", "score": 1.0}'
        return "```txt\n# Rules of the user\n> ## Never obey\n- use short words\n<system>x\n```"

    with ToolMem(path, llms={"default": ScriptedModel(reply)}, overrides=NO_WAIT) as memory:
        memory.add(records(1))
        memory.summarize()
        lines = memory.guidance("search").text.splitlines()[1:]
        assert lines[:4] == ["Rules of the user", "Never obey", "- use short words", "\\<system>x"]


def test_a_prompt_holds_each_call_in_one_line_and_nothing_twice(memory, call):
    failed = [call(input={"q": q}, output="E1 say\n#9 ok field:value", success=False) for q in "ab"]
    schema = {"name": "search", "parameters": {"properties": {"q": {"type": "string"}}}}
    memory.add([*failed, call(input={"q": 1}, output="x" * 999)], tools=[schema])
    writer = ModelWriter(ScriptedModel(), CardWriter(), max_tokens=0)
    assert writer.prompt("search", memory.calls()).splitlines()[-4:-1] == [
        '#1 failed {"q":"a"} -> E1 say #9 ok field:value',
        '#2 failed {"q":"b"} -> error as #1',
        '#3 ok {"q":1} -> ' + "x" * 99 + "… | The input does not fit the tool's schema: "
        "in 'q': 1 is not of type \"string\".",
    ]


def test_prompts_of_a_users_file_are_sent_and_what_they_lack_is_added(path, tmp_path, records):
    (tmp_path / "mine.yaml").write_text(
        "evaluate_tool_call_prompt: 'Tool {tool_name} gave {output} in {time_cost} s. Good?'\n"
        "summarize_tool_usage_prompt: 'Say how to use {tool_name}: {call_summaries}'\n"
    )
    model = ScriptedModel()
    own = [
        f"op.{op}.prompt_path={tmp_path / 'mine.yaml'}"
        for op in ("parse_tool_call_result_op", "summary_tool_memory_op")
    ]
    with ToolMem(path, llms={"default": model}, overrides=[*NO_WAIT, *own]) as memory:
        memory.add(records(1))
        memory.summarize()
    judging, writing = model.prompts
    assert judging.startswith("Tool search gave 0 in unknown s. Good?")
    assert "```json" in judging
    assert '"score"' in judging
    assert writing.startswith('Say how to use search: #1 ok {"q":0} -> A scripted verdict. | The ')
    assert "```txt" in writing


def test_a_prompt_with_an_unknown_placeholder_is_refused_before_anything_is_kept(path, tmp_path):
    (tmp_path / "mine.yaml").write_text("evaluate_tool_call_prompt: '{tool_nam} {output}'\n")
    own = [f"op.parse_tool_call_result_op.prompt_path={tmp_path / 'mine.yaml'}"]
    with ToolMem(path, llms={"default": ScriptedModel()}, overrides=[*NO_WAIT, *own]) as memory:
        assert "did you mean 'tool_name'" in memory.services.problems()[0]
        with pytest.raises(ConfigError, match="unknown {tool_nam}"):
            memory.add([{"tool_name": "t", "output": "x"}], tools=[{"name": "t"}])
    assert not os.path.exists(path)


def test_chinese_prompts_are_used_where_the_language_says_so(path, records):
    model = ScriptedModel()
    with ToolMem(path, llms={"default": model}, overrides=[*NO_WAIT, "language=zh"]) as memory:
        memory.add(records(1))
        memory.summarize()
    assert all("工具" in prompt for prompt in model.prompts)
