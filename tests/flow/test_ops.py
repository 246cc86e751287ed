from __future__ import annotations

import pytest

from toolmem.errors import ConfigError
from toolmem.flow.op import Op, OpParams, snake_case


def test_names_are_the_class_name_in_snake_case(ops):
    assert ops["count_words_op"].name == "count_words_op"
    assert snake_case("ParseToolCallResultOp") == "parse_tool_call_result_op"
    assert snake_case("LLMMockSearchOp") == "llm_mock_search_op"
    assert snake_case("GetAkA2CodeOp") == "get_ak_a2_code_op"


def test_all_problems_of_an_op_are_raised_at_once(ops):
    with pytest.raises(ConfigError) as caught:
        ops["count_words_op"](at_least=True, facto=1, lllm="x", max_retries=-1, label=None)
    assert caught.value.problems == [
        "op.count_words_op.max_retries: expected at least 0, got -1",
        "op.count_words_op.params.at_least: expected a whole number, got true",
        "op.count_words_op.params.label: expected text, got null",
        "op.count_words_op.params.facto: unknown (did you mean 'factor'?)",
        "op.count_words_op.params.lllm: unknown (did you mean 'llm'?)",
    ]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "1", True])
def test_a_number_is_finite_and_no_text(ops, wrong):
    with pytest.raises(ConfigError, match=r"op\.count_words_op\.params\.factor: expected a"):
        ops["count_words_op"](factor=wrong)


def test_a_whole_number_serves_where_a_float_is_declared(ops):
    assert ops["count_words_op"](factor=2).params.factor == 2.0


def test_params_cannot_take_the_name_of_a_setting():
    with pytest.raises(TypeError, match="every op has llm already"):

        class WrongOp(Op):
            class Params(OpParams):
                llm: str = ""

            async def execute(self, context):
                raise AssertionError


def test_reads_given_as_one_text_is_noticed():
    with pytest.raises(TypeError, match=r"reads is a tuple of keys"):

        class WrongOp(Op):
            reads = "text"

            async def execute(self, context):
                raise AssertionError


def test_ops_are_equal_when_class_key_params_and_settings_are(ops):
    count = ops["count_words_op"]
    assert count(at_least=1) == count()
    assert count(at_least=2) != count()
    assert count(llm="fast") != count()
    assert count().under("quick") != count()
    assert hash(count(at_least=1)) == hash(count())
