from __future__ import annotations

import pytest

from toolmem.errors import ConfigError, FlowSyntaxError
from toolmem.flow.expression import MOST_OPS, parse
from toolmem.flow.op import Parallel, Sequential


def problems(text, ops) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, ops)
    return caught.value.problems


def test_both_dialects_read_as_the_same_flow(ops):
    names = parse("count_words_op >> report_count_op", ops)
    classes = parse("CountWordsOp() >> ReportCountOp()", ops)
    assert names == classes == parse("count_words_op() >> ReportCountOp()", ops)
    assert [op.key for op in names.ops()] == ["count_words_op", "report_count_op"]


def test_sequence_binds_tighter_than_parallel(ops):
    flow = parse("upper_case_op | count_words_op >> report_count_op", ops)
    assert isinstance(flow, Parallel)
    assert isinstance(flow.parts[1], Sequential)
    assert flow == parse("upper_case_op | (count_words_op >> report_count_op)", ops)
    assert flow != parse("(upper_case_op | count_words_op) >> report_count_op", ops)


def test_parts_of_one_kind_are_one_part_however_they_are_grouped(ops):
    flow = parse("(upper_case_op >> count_words_op) >> report_count_op", ops)
    assert flow == parse("upper_case_op >> (count_words_op >> report_count_op)", ops)
    assert len(flow.parts) == 3


def test_literals_of_every_kind_reach_the_op(ops):
    text = "CountWordsOp(at_least=2, factor=-0.0, weights=[1, 2.5], extra={'k': [None, True]}, llm='default')"
    op = next(parse(text, ops).ops())
    assert op.params.at_least == 2
    assert op.params.weights == [1.0, 2.5]
    assert op.params.extra == {"k": [None, True]}
    assert op.settings.llm == "default"


@pytest.mark.parametrize(
    "text",
    [
        "(\n  count_words_op\n  >> report_count_op\n)",
        "count_words_op\n>> report_count_op\n",
        "count_words_op >>\n    report_count_op",
        "  count_words_op >> report_count_op",
        "\n\n  count_words_op\n\n     >> report_count_op",
        "# what comes first\nfirst = CountWordsOp()\n   last = report_count_op\nfirst >> last  # done",
        "flow = count_words_op >> report_count_op\nflow",
    ],
)
def test_an_expression_may_go_over_several_lines(ops, text):
    assert parse(text, ops) == parse("count_words_op >> report_count_op", ops)


def test_an_alias_is_an_op_of_its_own_key(ops):
    keys = {**ops, "quick_count": ops["count_words_op"]}
    flow = parse("quick_count(at_least=3) >> report_count_op", keys)
    assert [op.key for op in flow.ops()] == ["quick_count", "report_count_op"]
    assert str(flow) == "quick_count(at_least=3) >> ReportCountOp()"


def test_an_unknown_op_names_the_nearest_with_line_and_column(ops):
    assert problems("first = upper_case_op\nfirst >> count_word_op", ops) == [
        (
            "flow_content: line 2, column 10 at 'count_word_op': no op is called 'count_word_op'; "
            "did you mean 'count_words_op'?"
        )
    ]
    assert "did you mean 'CountWordsOp'?" in problems("CountWordOp()", ops)[0]


def test_columns_count_characters_of_the_text_as_it_was_written(ops):
    assert "line 2, column 13 at 'nope'" in problems("    upper_case_op\n    | 'é' | nope", ops)[-1]
    assert "line 1, column 22 at 'nope'" in problems("    upper_case_op >> nope", ops)[0]


def test_all_problems_are_reported_at_once(ops):
    found = problems("nope >> CountWordsOp(3) >> neither(at_least=x)", ops)
    assert len(found) == 3
    assert "no op is called 'nope'" in found[0]
    assert "positional arguments are not allowed" in found[1]
    assert "expected a literal" in found[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("# only a comment", "is empty"),
        ("count_words_op >>", "invalid syntax"),
        ("count_words_op << report_count_op", "allowed are"),
        ("count_words_op & report_count_op", "allowed are"),
        ("count_words_op.run", "allowed are"),
        ("lambda: count_words_op", "allowed are"),
        ("[count_words_op]", "allowed are"),
        ("3", "allowed are"),
        ("import os", "the last line must be the flow itself"),
        ("import os\ncount_words_op", "only lines `name = ...`"),
        ("count_words_op; report_count_op", "only lines `name = ...`"),
        ("a = count_words_op", "the last line must be the flow itself"),
        ("a = count_words_op\na = report_count_op\na", "assigned twice"),
        ("a = count_words_op\na()", "not an op"),
        ("CountWordsOp(**{'at_least': 2})", "** is not allowed"),
        ("CountWordsOp(*[1])", "positional arguments"),
        ("CountWordsOp(at_least=2, at_least=3)", "is given twice"),
        ("CountWordsOp(at_least=1+1)", "expected a literal"),
        ("CountWordsOp(at_least=len('a'))", "expected a literal"),
        ("CountWordsOp(label=f'{1}')", "expected a literal"),
        ("CountWordsOp(label=b'x')", "expected a literal"),
        ("CountWordsOp(at_least=1j)", "expected a literal"),
        ("CountWordsOp(factor=1e999)", "a finite number"),
        ("CountWordsOp(factor=-1e999)", "a finite number"),
        ("CountWordsOp(label=true)", "expected True"),
        ("CountWordsOp(extra={1: 2})", "keys are text"),
        ("CountWordsOp(extra={'a': 1, 'a': 2})", "stands twice"),
        ("(count_words_op := report_count_op)", "allowed are"),
        ("count_words_op\x00", "null bytes"),
        ("CountWordsOp(label='\ud800')", "cannot be read"),
    ],
)
def test_everything_else_is_refused_with_what_is_allowed(ops, text, said):
    with pytest.raises(FlowSyntaxError) as caught:
        parse(text, ops)
    assert any(said in problem for problem in caught.value.problems), caught.value.problems
    assert all(problem.startswith("flow_content: line ") for problem in caught.value.problems)


def test_a_literal_that_is_no_valid_param_is_refused_in_dotted_form(ops):
    assert problems("CountWordsOp(at_least=0, factr=2, label=3)", ops) == [
        "op.count_words_op.params.at_least: expected at least 1, got 0",
        "op.count_words_op.params.label: expected text, got 3 (quote it to make it text)",
        "op.count_words_op.params.factr: unknown (did you mean 'factor'?)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "count_words_op" + ")" * 5000,
        "(" * 150 + "count_words_op" + ")" * 150 + " | (" * 60 + "a >> b" + ")" * 60,
        "-" * 15000 + "1",
        "CountWordsOp(extra=" + "[" * 180 + "]" * 180 + ")",
        "count_words_op >> " * 10_000 + "count_words_op",
        "a" * 50_000,
        "CountWordsOp(at_least=" + "9" * 10_000 + ")",
        "".join(f"{'(' * i}count_words_op | count_words_op >> " for i in range(60)),
    ],
)
def test_huge_and_deep_texts_are_refused_gracefully(ops, text):
    with pytest.raises(FlowSyntaxError):
        parse(text, ops)


def test_names_that_double_a_flow_line_by_line_stop_at_the_limit(ops):
    lines = ["a0 = upper_case_op >> upper_case_op"] + [f"a{i} = a{i - 1} >> a{i - 1}" for i in range(1, 60)]
    assert f"more than {MOST_OPS} ops" in problems("\n".join([*lines, "a59"]), ops)[0]


def test_a_long_flow_within_the_limit_is_read(ops):
    flow = parse(" >> ".join(["upper_case_op"] * MOST_OPS), ops)
    assert sum(1 for _ in flow.ops()) == MOST_OPS
    assert parse(str(flow), ops) == flow
