"""Two evaluations are held against each other, tool by tool."""

import pytest

from toolmem.errors import RequestError
from toolmem.research.compare import ComparedCall, compare, read_calls
from toolmem.research.evaluation import evaluate
from toolmem.research.rates import Outcome, difference, kappa, paired_difference, rate_of
from toolmem.research.report import write_csv_files


def calls(worked, tool="a", first=0):
    same = {"tool_name": tool, "output": "", "label": None}
    return [
        ComparedCall(row=n, input=str(n), worked=each, score=float(each), **same)
        for n, each in enumerate(worked, first)
    ]


def test_the_same_calls_are_compared_one_by_one_and_other_calls_as_unrelated():
    before, after = calls([True] * 50 + [False] * 50), calls([True] * 60 + [False] * 40)
    paired = compare(before, after)
    total, tool = paired.tools
    assert (total.tool_name, tool.tool_name, paired.is_paired) == ("", "a", True)
    assert (tool.worked.a, tool.worked.b, tool.worked.change) == pytest.approx((0.5, 0.6, 0.1))
    assert (paired.same_scores, paired.scored_pairs) == (90, 100)
    assert paired.other_scores == list(range(50, 60))
    other = compare(before, calls([True] * 60 + [False] * 40, first=1000))
    assert not other.is_paired and other.kappa is None
    narrow, wide = tool.worked, other.tools[1].worked
    assert wide.low < 0 < narrow.low < 0.1 < narrow.high < wide.high


def test_tools_of_one_evaluation_alone_are_named_and_without_a_common_one_it_is_refused():
    found = compare(calls([True]) + calls([True], "b"), calls([False]) + calls([True], "c"))
    assert (found.only_a, found.only_b) == (["b"], ["c"])
    assert (found.tools[0].calls_a, found.tools[0].worked.change) == (1, -1.0)
    with pytest.raises(RequestError, match="no tool is in both: the first has a; the second has c"):
        compare(calls([True]), calls([True], "c"))


def test_what_an_evaluation_wrote_is_read_again(tmp_path):
    path = tmp_path / "calls.jsonl"
    text = '{"tool_name": "a", "output": "fine"}\n'
    path.write_text(text + text.replace("fine", "Error: x"))
    write_csv_files(evaluate(path), tmp_path)
    assert [(call.worked, call.score) for call in read_calls(tmp_path)] == [(True, 1), (False, 0)]
    assert read_calls(tmp_path) == read_calls(tmp_path / "calls.csv")
    spoiled = (tmp_path / "calls.csv").read_text().replace(",1.0,ok", ",nan,ok")
    (tmp_path / "calls.csv").write_text(spoiled)
    with pytest.raises(RequestError, match="the score 'nan' is not between 0 and 1; name a"):
        read_calls(tmp_path)
    (tmp_path / "calls.csv").write_text("tool_name,worked\na,true\n")
    for place, told in ((tmp_path / "none", "none: "), (tmp_path, "'row' is missing")):
        with pytest.raises(RequestError, match=f"{told}.*name a folder that"):
            read_calls(place)


def test_intervals_and_kappa_are_those_of_the_sources():
    # Newcombe 1998, table II, (a): 56 of 70 and 48 of 80, method 10.
    rates = [rate_of([Outcome(n < k) for n in range(size)]) for k, size in ((48, 80), (56, 70))]
    assert difference(*rates) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([(True, True)]) is None
    low, high = paired_difference(pairs)
    assert low < 0.1 < high and low + high == pytest.approx(2 * 5 / 52)
