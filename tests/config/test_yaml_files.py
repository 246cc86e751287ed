from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config.document import read_file, read_text
from toolmem.errors import ConfigError


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_text(text, "my.yaml")
    return caught.value.problems


def test_scalars_follow_our_rules():
    tree = read_text(
        "time: 12:30\nanswer: no\nbig: 1_000\nzero: 007\nday: 2025-01-01\nflag: true\nnumber: 1.5\n"
        "quoted: '4'\ndouble: \"true\"\nnothing:\ntilde: ~\ntagged: !!str 5\nlist: [1, no, x]\n",
        "my.yaml",
    ).tree
    assert tree == {
        "time": "12:30",
        "answer": "no",
        "big": "1_000",
        "zero": "007",
        "day": "2025-01-01",
        "flag": True,
        "number": 1.5,
        "quoted": "4",
        "double": "true",
        "nothing": None,
        "tilde": None,
        "tagged": "5",
        "list": [1, "no", "x"],
    }


def test_block_texts_stay_as_they_are():
    tree = read_text("a: |\n  one >> two\n  three\nb: >-\n  one\n  two\n", "my.yaml").tree
    assert tree == {"a": "one >> two\nthree\n", "b": "one two"}


def test_the_line_of_each_value_is_known():
    document = read_text("a: 1\nb:\n  c:\n    - x\n  d: 2\n", "my.yaml")
    assert document.place(("a",)) == "my.yaml:1"
    assert document.place(("b", "d")) == "my.yaml:5"
    assert document.place(("b", "c", "0")) == "my.yaml:3"
    assert document.place(("unknown",)) == "my.yaml"


def test_a_key_that_stands_twice_is_an_error_with_both_lines():
    assert refused("a:\n  b: 1\n  c: 2\n  b: 3\n") == ["my.yaml, line 4: the key 'b' stands twice (first in line 2)"]


def test_all_problems_of_a_file_are_told_at_once():
    found = refused("a: .inf\nb: 1\nb: 2\nc: !!python/name:os.system x\n? [1, 2]\n: 3\n")
    assert [problem.split(": ", 1)[0] for problem in found] == [
        "my.yaml, line 1",
        "my.yaml, line 3",
        "my.yaml, line 4",
        "my.yaml, line 5",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1, 2", "line 1, column 9: not YAML"),
        ("a: 1\n\tb: 2", "line 2, column 1: not YAML"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        ("- 1\n- 2\n", "expected sections"),
        ("just text", "expected sections"),
        ("a: &x [*x]", "repeats itself"),
        ("a: " + "[" * 500, "nested too deeply"),
        ("a: \x00", "not YAML"),
    ],
)
def test_what_is_no_configuration_is_refused(text, said):
    assert said in refused(text)[0]


def test_an_alias_that_grows_without_end_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "repeats itself" in refused("\n".join(lines))[0]


def test_an_empty_file_says_nothing():
    assert read_text("", "my.yaml").tree == {}
    assert read_text("# nothing\n", "my.yaml").tree == {}


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.yaml: no such file"):
        read_file(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.yaml: cannot be read"):
        read_file(binary)


@given(text=st.text(max_size=80) | st.text("ab:-[]{}&*!|>'\"# \n12.", max_size=60))
def test_any_text_is_read_or_refused(text):
    problems: list[str] = []
    tree = None
    try:
        tree = read_text(text, "my.yaml").tree
    except ConfigError as error:
        problems = error.problems
    assert isinstance(tree, dict) or problems
    assert all(problem.startswith("my.yaml") for problem in problems)
