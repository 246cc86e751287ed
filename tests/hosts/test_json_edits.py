"""A settings file keeps every byte that a change does not concern."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor_time import grows_at_most
from toolmem.errors import RequestError
from toolmem.hosts.json_edits import JsonText, changed

OURS = {"hooks": [{"type": "command", "command": "/x/python", "args": ["-P", "-m", "toolmem.hosts"]}]}

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def layouts(value: dict[str, Any]) -> list[str]:
    spread = json.dumps(value, indent=2)
    return [
        json.dumps(value),
        json.dumps(value, separators=(",", ":")),
        json.dumps(value, indent=4, ensure_ascii=False),
        json.dumps(value, indent="\t"),
        spread + "\n",
        spread.replace("\n", "\r\n"),
        "\n\n  " + json.dumps(value, separators=(" ,  ", "  : ")) + "  \n",
    ]


@given(VALUES, st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_any_text_is_changed_to_any_value(value: Any, wanted: dict[str, Any]) -> None:
    for text in layouts({"a": value}):
        assert json.loads(changed(text, wanted)) == wanted


@given(st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), VALUES, min_size=1, max_size=4))
def test_what_is_added_and_removed_again_leaves_the_same_bytes(settings: dict[str, Any]) -> None:
    for text in layouts(settings):
        more = {**settings, "hooks": {"PreToolUse": [OURS]}}
        added = changed(text, more)
        assert json.loads(added) == more
        assert changed(added, settings) == text


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_an_entry_beside_others_leaves_their_bytes_alone(entries: list[Any]) -> None:
    settings = {"hooks": {"PreToolUse": entries}, "z": 1}
    for text in layouts(settings):
        added = changed(text, {"hooks": {"PreToolUse": [*entries, OURS]}, "z": 1})
        assert changed(added, settings) == text


def test_what_is_new_is_laid_out_like_what_stands_there() -> None:
    text = '{\r\n\t"a" :  [1,2],\r\n\t"hooks": {}\r\n}\r\n'
    assert changed(text, {"a": [1, 2], "hooks": {"X": [True]}}) == (
        '{\r\n\t"a" :  [1,2],\r\n\t"hooks": {\r\n\t\t"X": [true]\r\n\t}\r\n}\r\n'
    )
    assert changed("{}", {"a": [{"b": 1}]}) == '{\n  "a": [\n    {\n      "b": 1\n    }\n  ]\n}'
    assert changed('{"a":1}', {"a": 1, "b": [2]}) == '{"a":1, "b": [2]}'


def test_comments_and_a_comma_at_the_end_stay() -> None:
    text = '{\n  // first\n  "a": 1, /* one */\n  "b": 2 // two\n}\n'
    added = changed(text, {"a": 1, "b": 2, "c": 3}, comments=True)
    assert added == '{\n  // first\n  "a": 1, /* one */\n  "b": 2, // two\n  "c": 3\n}\n'
    assert changed(added, {"a": 1, "b": 2}, comments=True) == text
    trailing = '{\n  "a": [1,],\n}\n'
    assert changed(trailing, {"a": [1, 2], "b": 1}, comments=True) == '{\n  "a": [1, 2,],\n  "b": 1,\n}\n'
    assert changed("{ // none\n}", {"a": 1}, comments=True) == '{\n  "a": 1\n // none\n}'


COMMENTED = st.lists(st.sampled_from(["// x,}\n", "/* , */", "\n", "  ", "\n    "]), max_size=3).map("".join)


@given(st.lists(st.tuples(COMMENTED, COMMENTED, COMMENTED), min_size=1, max_size=3), COMMENTED, st.booleans())
def test_what_is_added_beside_comments_and_removed_again_leaves_the_same_bytes(
    gaps: list[tuple[str, str, str]], last: str, trailing: bool
) -> None:
    members = [f'{before}"{key}":{within}1{after}' for key, (before, within, after) in zip("abc", gaps, strict=False)]
    text = "{" + ",".join(members) + ("," if trailing else "") + last + "}"
    settings = JsonText(text, comments=True).root.value
    added = changed(text, {**settings, "hooks": [OURS]}, comments=True)
    assert JsonText(added, comments=True).root.value == {**settings, "hooks": [OURS]}
    assert changed(added, settings, comments=True) == text


@given(
    st.lists(
        st.sampled_from(['"a": 1', '"b": [1, 2]', '"c": {"d": 2}', "// x,}\n", "/* , */", "\n", "  ", ","]), max_size=12
    ),
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 2) | st.just([1, 2]) | st.just({"d": 2})),
)
def test_texts_with_comments_anywhere_are_refused_or_changed(parts: list[str], wanted: dict[str, Any]) -> None:
    text = "{" + "".join(parts) + "}"
    try:
        JsonText(text, comments=True)
    except RequestError:
        return
    new = changed(text, wanted, comments=True)
    assert JsonText(new, comments=True).root.value == wanted
    assert [new.count(each) for each in ("// x,}\n", "/* , */")] == [
        text.count(each) for each in ("// x,}\n", "/* , */")
    ]


def test_a_key_that_stands_twice_is_removed_whole() -> None:
    assert changed('{"hooks": 1, "a": 2, "hooks": 3}', {"a": 2}) == '{"a": 2}'


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{\n  "a": 1,\n}', "line 2, column 9", "comma"),
        ('{\r\n  "a": // no\r\n1}', "line 2, column 8", "comment"),
        ("", "line 1, column 1", "value"),
        ('{"a": tru}', "line 1, column 7", "value"),
        ('{"a": 01}', "line 1, column 8", "','"),
        ('{"a": NaN}', "line 1, column 7", "value"),
        ('{"a": "x\ny"}', "line 1, column 9", "control"),
        ('{"a": 1} x', "line 1, column 10", "end of the file"),
        ("{'a': 1}", "line 1, column 2", "double quotes"),
        ("[" * 5000, "line 1, column 201", "nested"),
    ],
)
def test_a_text_that_is_no_json_is_refused_with_its_place(text: str, place: str, what: str) -> None:
    with pytest.raises(RequestError, match=f"{place}: .*{what}"):
        JsonText(text)


@given(VALUES)
def test_what_is_read_is_what_the_standard_library_reads(value: Any) -> None:
    for text in layouts({"k": value}):
        assert JsonText(text).root.value == json.loads(text)


def test_reading_takes_time_in_proportion_to_the_text() -> None:
    def edited(count: int) -> Callable[[], object]:
        text = "{" + ", ".join(f'"k{n}": [{n}, "{"x" * 20}"]' for n in range(count)) + "}"
        return lambda: changed(text, {**json.loads(text), "hooks": {}})

    assert grows_at_most(12, edited, 2000, 8000)  # 16 were quadratic
