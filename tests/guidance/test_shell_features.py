from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.readers.shell import looks_like_command, read_command


@pytest.mark.parametrize(
    ("text", "program", "programs"),
    [
        ("ls -la /srv", "ls", ("ls",)),
        ("cd a && grep -rn 'x | y' . | wc -l", "cd", ("cd", "grep", "wc")),
        ("FOO=1 sudo /usr/bin/apt-get install x", "apt-get", ("apt-get",)),
        ("if test -f x; then cat x; fi", "test", ("test", "cat", "fi")),
        ("# only a comment", "", ()),
        ("", "", ()),
    ],
)
def test_programs_are_named_in_order(text: str, program: str, programs: tuple[str, ...]) -> None:
    command = read_command(text)
    assert command.program == program
    assert command.programs == programs


def test_flags_belong_to_the_program_that_takes_them() -> None:
    command = read_command("find . -name '*.py' -exec ls -l {} + | xargs wc -c")
    assert command.flags == {"find -name", "find -exec", "ls -l", "wc -c"}


def test_joints_are_found_outside_of_quotes() -> None:
    command = read_command("echo 'a | b && c' > out.txt")
    assert command.parts == {"a redirection"}
    assert command.arguments == ("'a | b && c'", ">", "out.txt")
    assert read_command("a || b").parts == {"||"}


def test_an_open_quote_is_noticed() -> None:
    assert not read_command("echo 'abc").balanced
    assert read_command('echo "it\'s"').balanced


def test_words_of_an_action_do_not_look_like_commands() -> None:
    assert looks_like_command("grep -n x y")
    assert looks_like_command("./run.sh")
    assert not looks_like_command("str_replace")


@given(st.text(max_size=300))
def test_any_text_can_be_read_as_a_command(text: str) -> None:
    read_command(text)
    looks_like_command(text)


def test_flags_inside_a_substitution_belong_to_the_program_there() -> None:
    command = read_command("cd $(find /srv -maxdepth 1 -type d | head -1)")
    assert command.flags == {"find -maxdepth", "find -type", "head -1"} - {"head -1"}
    assert command.programs == ("cd", "find", "head")
    assert read_command(r"find . \( -name a -o -name b \) -print").flags == {"find -name", "find -o", "find -print"}
