"""A judge's reply as models write it: read, or refused."""

import pytest

from toolmem import ToolMem
from toolmem.judge.reply import ReplyUnreadable, read_verdict
from toolmem.testing.scripted import ScriptedJudge, ScriptedModel

GOOD = '{"summary": "It ran.", "evaluation": "Fine.", "score": 1.0}'


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
        f"<think>Score 0.0 or {{1.0}}?</think>\n{GOOD}",
        "{'summary': 'It ran.', 'evaluation': 'Fine.', 'score': 1}",
        '{"summary": "It ran.", "evaluation": "Fine.", "score": "1.0",}',
        '{"Summary": "It ran.", "Evaluation": "Fine.", "Score": true}',
        '{"result": {"summary": "It ran.", "evaluation": "Fine.", "score": 0.9}}',
        '{"summary": "It ran.", "evaluation": ["Fine."], "score": 1.0} // done',
        "The call was {q: 1}. " + GOOD,
        f"{GOOD}\n{GOOD}",
    ],
)
def test_a_verdict_is_read_however_it_is_wrapped(reply):
    assert read_verdict(reply) == ("It ran.", "Fine.", 1)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("", "it is empty"),
        ("I cannot judge this.", "no complete JSON object"),
        (f"<think>endless {GOOD}", "a thought without an end"),
        ('{"summary": "It ran.", "score": 1.0', "no complete JSON object"),
        ('{"score": 1.0}', "no complete JSON object"),
        (GOOD + GOOD.replace("1.0", "0.0"), "different scores"),
        (GOOD.replace("1.0", '"very good"'), "neither 0.0 nor 1.0"),
        (GOOD.replace("1.0", "7"), "neither 0.0 nor 1.0"),
        (GOOD.replace("1.0", "null"), "neither 0.0 nor 1.0"),
        ('{"summary": "", "evaluation": null, "score": 1.0}', "are empty"),
    ],
)
def test_what_is_no_verdict_is_refused_with_its_reason(reply, told):
    with pytest.raises(ReplyUnreadable, match=told):
        read_verdict(reply)


def test_a_score_between_goes_to_the_nearer_one():
    assert read_verdict(GOOD.replace("1.0", "0.49")).score == 0
    assert read_verdict(GOOD.replace("1.0", "0.5")).score == 1


def test_megabytes_of_garbage_are_refused():
    for garbage in ("{" * 2_000_000, '{"a":' * 400_000, "{}" * 1_000_000, '{"x": "' * 300_000):
        with pytest.raises(ReplyUnreadable):
            read_verdict(garbage)


@pytest.mark.parametrize("thought", ["<think>Is it {1.0}?</think>\n", "Is it so?\n</think>\n"])
def test_a_thought_aloud_is_no_guidance(thought):
    model = ScriptedModel(lambda prompt: thought + "Use short words.")
    judges = {"default": ScriptedJudge()}
    with ToolMem(":memory:", llms={"default": model}, judges=judges) as memory:
        memory.add([{"tool_name": "search", "output": "3 hits"}])
        memory.summarize()
        assert memory.guidance("search").text.startswith("## `search`\nUse short words.")
