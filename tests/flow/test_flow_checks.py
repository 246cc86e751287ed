from __future__ import annotations

import pytest

from toolmem.config.settings import Argument
from toolmem.errors import RequestError
from toolmem.flow.checks import check_arguments, check_flow, check_request, wanted
from toolmem.flow.expression import parse
from toolmem.flow.op import Op


def found(text, held, ops) -> list[str]:
    return check_flow(parse(text, ops), held, ops=ops)


def test_a_flow_whose_ops_find_what_they_read_has_no_problem(ops):
    assert found("count_words_op >> report_count_op", ["text"], ops) == []
    assert found("(count_words_op | upper_case_op) >> report_count_op", ["text"], ops) == []


def test_an_op_that_would_not_find_a_key_is_named_with_who_could_leave_it(ops):
    assert found("report_count_op >> count_words_op", ["text"], ops) == [
        (
            "report_count_op reads 'count', but no op before it leaves it: "
            "put count_words_op or fail_op before it, or declare it in input_schema"
        )
    ]


def test_all_missing_keys_are_reported_at_once(ops):
    problems = found("upper_case_op >> count_words_op", [], ops)
    assert len(problems) == 2
    assert all("declare it in input_schema" in problem for problem in problems)


def test_optional_keys_are_not_missed(ops):
    assert not any("unit" in problem for problem in found("report_count_op", ["count"], ops))


def test_an_op_that_stands_before_the_one_whose_work_it_uses_is_refused(ops):
    class ListWordsOp(Op):
        optional = ("count", "upper")

        async def execute(self, context):
            raise AssertionError

    ops.register(ListWordsOp)
    assert found("list_words_op >> sleep_op >> count_words_op", ["text"], ops) == [
        "list_words_op uses 'count', but count_words_op, which leaves it, comes after it: put count_words_op before it"
    ]
    assert len(found("list_words_op >> (count_words_op | upper_case_op)", ["text"], ops)) == 2
    # What is there already, or is used further on, is no mistake.
    assert found("list_words_op >> count_words_op", ["text", "count"], ops) == []
    assert found("list_words_op >> count_words_op >> list_words_op", ["text"], ops) == []
    assert found("list_words_op >> count_words_op >> report_count_op", ["text"], ops) == []
    assert found("list_words_op", [], ops) == []


def test_two_branches_that_leave_one_key_are_refused(ops):
    problems = found("count_words_op | fail_op", ["text"], ops)
    assert len(problems) == 1
    assert "run side by side and both leave 'count'" in problems[0]


def test_a_branch_does_not_find_what_another_one_leaves(ops):
    problems = found("count_words_op | report_count_op", ["text"], ops)
    assert problems == [
        "report_count_op reads 'count', which CountWordsOp() leaves in a parallel branch: compose them by >>"
    ]
    # Even where the key is there before: which of the two values it sees is chance.
    assert found("count_words_op | report_count_op", ["text", "count"], ops) == problems


def test_what_a_flow_wants_of_its_request(ops):
    flow = parse("(upper_case_op | count_words_op) >> report_count_op", ops)
    assert wanted(flow) == (("text",), ("unit",))


SCHEMA = {
    "text": Argument(type="string"),
    "mode": Argument(type="string", enum=["fast", "slow"], required=False),
    "limit": Argument(type="integer", required=False, enum=[0, 1]),
    "share": Argument(type="number", required=False),
    "names": Argument(type=["string", "array"], required=False),
    "force": Argument(type="boolean", required=False),
    "options": Argument(type="object", required=False),
}


def refused(ops, **request) -> RequestError:
    with pytest.raises(RequestError) as caught:
        check_request({"workspace_id": "team", "text": "a b", **request}, SCHEMA, parse("upper_case_op", ops))
    return caught.value


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("text", 3, "expected a string, got 3"),
        ("text", None, "missing"),
        ("mode", "fst", "expected one of fast, slow; got 'fst' (did you mean 'fast'?)"),
        ("limit", True, "expected an integer, got true"),
        ("limit", 2, "expected one of 0, 1"),
        ("limit", 1.0, "expected an integer"),
        ("share", "1", "expected a number"),
        ("share", float("nan"), "expected a number"),
        ("share", True, "expected a number"),
        ("names", {"a": 1}, "expected a string or a list"),
        ("force", 1, "expected a boolean"),
        ("options", [], "expected an object"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(ops, field, value, said):
    error = refused(ops, **{field: value})
    assert error.field == field
    assert str(error).startswith(f"{field}: ")
    assert said in str(error)


def test_an_unknown_key_is_refused_with_the_nearest(ops):
    error = refused(ops, focre=True)
    assert (error.field, str(error)) == ("focre", "focre: unknown (did you mean 'force'?)")


def test_good_arguments_pass_and_null_counts_as_not_given(ops):
    request = {"workspace_id": "team", "text": "", "limit": 0, "share": 2, "names": ["a,b"], "force": False}
    accepted = check_request({**request, "mode": None}, SCHEMA, parse("upper_case_op", ops))
    assert accepted == request


@pytest.mark.parametrize("good", ["a", "0", "team.one_two-3", "A" * 128])
def test_workspace_ids(ops, good):
    assert (
        check_request({"workspace_id": good, "text": ""}, SCHEMA, parse("upper_case_op", ops))["workspace_id"] == good
    )


@pytest.mark.parametrize(
    "bad", ["", "../escape", ".hidden", "-x", "a/b", "a b", "A" * 129, "团队", "a\n", 3, ["a"], None]
)
def test_a_workspace_id_that_could_leave_its_place_is_refused(ops, bad):
    with pytest.raises(RequestError, match="workspace_id: ") as caught:
        check_request({"workspace_id": bad, "text": ""}, SCHEMA, parse("upper_case_op", ops))
    assert caught.value.field == "workspace_id"


def test_a_flow_composed_in_python_takes_what_its_ops_read(ops):
    flow = ops["count_words_op"]() >> ops["report_count_op"]()
    assert check_request({"workspace_id": "w", "text": "a", "unit": "x"}, None, flow)["unit"] == "x"
    with pytest.raises(RequestError, match=r"text: missing \(count_words_op reads it\)"):
        check_request({"workspace_id": "w"}, None, flow)
    with pytest.raises(RequestError, match=r"txt: unknown \(did you mean 'text'\?\)"):
        check_request({"workspace_id": "w", "txt": "a"}, None, flow)
    with pytest.raises(RequestError, match="workspace_id: missing"):
        check_request({"text": "a"}, None, flow)


def test_a_number_of_any_length_is_a_number():
    given = {"n": 10**400}
    assert check_arguments(given, {"n": Argument(type="number")}) == given


@pytest.mark.parametrize(
    ("kind", "value"),
    [("integer", 5.0), ("integer", True), ("number", True), ("number", float("nan")), ("array", "a"), ("array", b"a")],
)
def test_a_request_takes_the_type_that_is_asked_for_and_nothing_near_it(kind, value):
    with pytest.raises(RequestError, match=r"^n: expected"):
        check_arguments({"n": value}, {"n": Argument(type=kind)})
