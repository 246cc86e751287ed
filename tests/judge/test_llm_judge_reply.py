"""What a judge's reply may look like, and when it is unreadable."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolmem.errors import ReplyUnreadable
from toolmem.judge.verdict_reply import ReadReply, read_verdict

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60).map(str.strip).filter(bool)
# typographic quotes have no escape, so that a text inside them must not hold any
plain_texts = texts.filter(lambda text: not set(text) & set('"“”„‟\\'))
scores = st.sampled_from([0.0, 1.0])

SCORE_FORMS = {
    0.0: ["0", "0.0", '"0.0"', "'0'", "false", "False", "0.49", "0.", "0e0", '" 0 "', "-0.0"],
    1.0: ["1", "1.0", '"1.0"', "'1'", "true", "True", "0.5", "1.", "1e0", '"0.93"', "+1"],
}
WRAPPINGS = [
    "{}",
    "```json\n{}\n```",
    "```json\n{}",
    "```\n{}\n```",
    "```JSON {}```",
    "Here is my judgement:\n\n{}\n\nLet me know if you need more.",
    "The set {{1, 2}} and a {{placeholder}} and an open {{ brace.\n{}",
    'I don\'t see "an {{ error" there. {}',
    '<think>The score may be {{"summary": "x", "evaluation": "y", "score": 0.5}} or not.</think>\n{}',
    "<thinking>\nhm\n</thinking>{}",
    'first draft {{"summary": "x", "evaluation": "y", "score": 0.2}} no, 1.0 {{"a: </think> {}',
    '{{"result": {}}}',
    '{{"ok": true, "verdicts": [{}]}}',
    "\ufeff{}",
]


def fields(summary: str, evaluation: str, score: str, quote=json.dumps) -> str:
    return f'{{"summary": {quote(summary)}, "evaluation": {quote(evaluation)}, "score": {score}}}'


@given(texts, texts, scores, st.data())
def test_a_verdict_reads_back_whatever_stands_around_it(summary, evaluation, score, data):
    body = fields(summary, evaluation, data.draw(st.sampled_from(SCORE_FORMS[score])))
    reply = data.draw(st.sampled_from(WRAPPINGS)).format(body)
    assert read_verdict(reply) == ReadReply(summary, evaluation, score)


def raw(text: str) -> str:
    """A string with raw line breaks and tabs in it."""
    return json.dumps(text, ensure_ascii=False).replace("\\n", "\n").replace("\\t", "\t")


@pytest.mark.parametrize(
    "render",
    [
        lambda s, e, n: repr({"summary": s, "evaluation": e, "score": n}),
        lambda s, e, n: repr({"score": n == 1.0, "summary": s, "evaluation": e, "error": None}),
        lambda s, e, n: json.dumps({"summary": s, "evaluation": e, "score": n}, ensure_ascii=False, indent=2),
        lambda s, e, n: json.dumps({"Score": n, "SUMMARY": s, " evaluation ": e}),
        lambda s, e, n: f'{{"summary": {json.dumps(s)}, "evaluation": {json.dumps(e)}, "score": {n},}}',
        lambda s, e, n: (
            f'{{ // my view\n"summary": {json.dumps(s)}, # short\n /* and */ "evaluation":'
            f' {json.dumps(e)} /* {{ */, "score": {n} // done\n}}'
        ),
        lambda s, e, n: f"{{summary: {json.dumps(s)}, evaluation: {json.dumps(e)}, score: {n}}}",
        lambda s, e, n: json.dumps({"summary": s, "evaluation": e, "score": n}) * 2,
        lambda s, e, n: (
            json.dumps({"score": 0.97, "title": "quoted data"})
            + json.dumps({"summary": s, "evaluation": e, "score": n})
        ),
    ],
    ids=["python", "bool", "indented", "case", "comma", "comments", "bare keys", "twice", "after quoted data"],
)
@given(summary=texts, evaluation=texts, score=scores)
def test_a_verdict_reads_back_in_every_dialect(render, summary, evaluation, score):
    assert read_verdict(render(summary, evaluation, score)) == ReadReply(summary, evaluation, score)


@given(texts.filter(lambda text: "\\" not in text), texts.filter(lambda text: "\\" not in text), scores)
def test_raw_line_breaks_in_strings_are_kept(summary, evaluation, score):
    assert read_verdict(fields(summary, evaluation, str(score), raw)) == ReadReply(summary, evaluation, score)


@given(plain_texts, plain_texts, scores)
@example("调用成功", "结果正确", 1.0)
def test_typographic_quotes_and_chinese_punctuation_read_back(summary, evaluation, score):
    reply = f"{{“summary”：“{summary}”，“evaluation”：“{evaluation}”，“score”：{score}}}"
    assert read_verdict(reply) == ReadReply(summary, evaluation, score)


def test_unescaped_quotes_inside_a_string_are_content():
    reply = '{"summary": "It said "not found", then stopped", "evaluation": "the "id" is wrong", "score": 0}'
    assert read_verdict(reply) == ReadReply('It said "not found", then stopped', 'the "id" is wrong', 0.0)


def test_aspects_sent_as_an_object_or_a_list_become_one_text():
    reply = '{"summary": ["One.", "Two."], "evaluation": {"success": "yes", "alignment": "good"}, "score": 1}'
    assert read_verdict(reply) == ReadReply("One. Two.", "success: yes; alignment: good", 1.0)


@pytest.mark.parametrize("missing", ["summary", "evaluation"])
def test_one_of_the_two_texts_is_enough(missing):
    sent = {"summary": "s", "evaluation": "e", "score": 1.0}
    sent[missing] = ""
    assert read_verdict(json.dumps(sent)).score == 1.0


UNREADABLE = {
    "": "empty",
    " \n\t ": "empty",
    "The call went well.": "no JSON object",
    '{"summary": "s", "evaluation": "e"}': "lacks a score",
    '{"score": 1.0}': "lacks a score, or a summary",
    '{"summary": "s", "evaluation": "e", "score": 7}': "score is 7.0",
    '{"summary": "s", "evaluation": "e", "score": -0.1}': "score is -0.1",
    '{"summary": "s", "evaluation": "e", "score": "good"}': "score is 'good'",
    '{"summary": "s", "evaluation": "e", "score": ""}': "score is ''",
    '{"summary": "s", "evaluation": "e", "score": null}': "score is None",
    '{"summary": "s", "evaluation": "e", "score": NaN}': "score is nan",
    '{"summary": "s", "evaluation": "e", "score": 1e999}': "score is inf",
    '{"summary": "s", "evaluation": "e", "score": "٠"}': "score is '٠'",
    '{"summary": "s", "evaluation": "e", "score": [1]}': "score is [1.0]",
    '{"summary": "s", "score": 1, "evaluation": "e", "Score": 0}': "score is nan",
    '{"summary": "", "evaluation": "  ", "score": 1.0}': "both its summary and its evaluation are empty",
    '{"summary": null, "evaluation": [], "score": 1.0}': "both its summary and its evaluation are empty",
    '```json\n{"summary": "s", "evaluation": "e", "score": 1.0': "cut off",
    '{"summary": "s", "score": 1.0, "evaluation": "it was cut in the mid': "cut off",
    '<think>{"summary": "s", "evaluation": "e", "score": 1.0} but wait': "no JSON object",
    '{"summary": "<one sentence>", "evaluation": "<2 sentences>", "score": <0.0 or 1.0>}': "no JSON object",
    "summary: s\nevaluation: e\nscore: 1.0": "no JSON object",
    '"{\\"summary\\": \\"s\\", \\"score\\": 1.0}"': "no JSON object",
}


@pytest.mark.parametrize(("reply", "problem"), UNREADABLE.items())
def test_everything_else_is_unreadable_and_says_why(reply, problem):
    with pytest.raises(ReplyUnreadable) as caught:
        read_verdict(reply)
    assert problem in str(caught.value)
    assert caught.value.reply == reply


def test_verdicts_that_contradict_each_other_are_unreadable():
    good, bad = fields("s", "e", "1.0").replace('"s"', json.dumps("s")), fields("t", "f", "0.0")
    with pytest.raises(ReplyUnreadable, match="different scores"):
        read_verdict(f"{good}\nOn reflection:\n{bad}")


def test_of_several_verdicts_that_agree_the_last_complete_one_counts():
    reply = fields("a", "b", "1") + fields("c", "d", "0.9") + '{"summary": "cut", "score": 1'
    assert read_verdict(reply) == ReadReply("c", "d", 1.0)


fragments = st.sampled_from(
    ['{"summary": "', '"score": ', "1.0", "0", "}", "{", "[", "]", ",", ":", '"', "'", "“", "\\", "\\u", "\\ud83d",
     "//", "/*", "*/", "#", "\n", "```json", "</think>", "<think>", "null", "evaluation", "score", " ", "：", "，"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.one_of(fragments, st.text(max_size=5)), max_size=40).map("".join)))
def test_no_text_raises_anything_but_reply_unreadable(text):
    try:
        read = read_verdict(text)
    except ReplyUnreadable:
        return
    assert read.score in (0.0, 1.0)
    assert read.summary or read.evaluation


def test_deep_nesting_is_unreadable():
    with pytest.raises(ReplyUnreadable):
        read_verdict('{"a":' * 50_000)


@pytest.mark.parametrize(
    "unit", ["{", '{"', '{"\\', '{"a":[', '"a":1,', '{"a":{"b":1},', "“{", '{"a" /* ', '", ', "{'a{\"", '{"a":"b']
)
def test_a_megabyte_of_garbage_is_refused_in_linear_time(unit):
    reply = '{"summary": "' + (unit * 1_000_000)[:1_000_000]
    started = time.process_time()
    with pytest.raises(ReplyUnreadable):
        read_verdict(reply)
    assert time.process_time() - started < 5  # measured: up to 1 s; a quadratic reader would take minutes


def test_a_long_reply_of_prose_before_the_verdict_is_read():
    prose = 'The tool was asked for {x} and said "no {y: 1}" at once. ' * 2_000
    assert read_verdict(prose + fields("s", "e", "1.0")) == ReadReply("s", "e", 1.0)
