"""Laws of flow expressions, over flows and texts that hypothesis makes up."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolmem.errors import ConfigError
from toolmem.flow.expression import parse
from toolmem.flow.op import Node, Parallel, Sequential

# The fixture of registered ops is the same for every example.
laws = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
params = st.fixed_dictionaries(
    {},
    optional={
        "at_least": st.integers(min_value=1),
        "factor": numbers.map(abs) | st.integers(min_value=0, max_value=10**6),
        "label": texts,
        "weights": st.lists(numbers, max_size=3),
        "extra": st.dictionaries(texts, json_values, max_size=3),
        "llm": texts.filter(bool),
        "raise_exception": st.booleans(),
    },
)


def flows(ops) -> st.SearchStrategy[Node]:
    single = st.one_of(
        st.builds(lambda given: ops["count_words_op"](**given), params),
        st.builds(lambda given: ops["count_words_op"](**given).under("quick_count"), params),
        st.builds(ops["report_count_op"]),
        st.builds(ops["upper_case_op"]),
    )
    return st.recursive(
        single,
        lambda inner: st.builds(
            lambda kind, parts: kind(*parts),
            st.sampled_from([Sequential, Parallel]),
            st.lists(inner, min_size=2, max_size=4),
        ),
        max_leaves=12,
    )


@laws
@given(data=st.data())
def test_the_text_of_a_flow_reads_as_the_flow(ops, data):
    flow = data.draw(flows(ops))
    keys = {**ops, "quick_count": ops["count_words_op"]}
    again = parse(str(flow), keys)
    assert again == flow
    assert str(again) == str(flow)
    assert [op.params for op in again.ops()] == [op.params for op in flow.ops()]


@laws
@given(data=st.data())
def test_operators_and_text_compose_alike(ops, data):
    first, second, third = (data.draw(flows(ops)) for _ in range(3))
    assert (first >> second) >> third == first >> (second >> third)
    assert (first | second) | third == first | (second | third)
    keys = {**ops, "quick_count": ops["count_words_op"]}
    assert parse(f"({first}) >> ({second}) | ({third})", keys) == first >> second | third


@laws
@given(text=st.text(max_size=60) | st.text("()>|=, \n'\"[]{}count_words_op1.#\\x*-:", max_size=80))
def test_any_text_is_read_or_refused_and_nothing_else_happens(ops, text):
    flow, problems = None, []
    try:
        flow = parse(text, ops)
    except ConfigError as error:
        problems = error.problems
    assert all(problem.strip() for problem in problems)
    assert parse(str(flow), ops) == flow if flow is not None else problems


@laws
@given(value=st.floats(), other=st.integers())
def test_only_finite_numbers_are_literals(ops, value, other):
    text = f"CountWordsOp(factor={value!r}, extra={{'n': {other}}})"
    try:
        op = next(parse(text, ops).ops())
    except ConfigError:
        assert not math.isfinite(value) or value < 0
    else:
        assert op.params.factor == value
        assert op.params.extra == {"n": other}
