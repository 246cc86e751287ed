"""Ways to write what a sentence forbids are stopped, or listed as limits; what only looks like it is not stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

from benchmarks.guard_rows import rows, said_to
from tests.processor_time import grows_at_most
from toolmem.guard.shell_commands import simple_commands

EVASIONS = rows("guard_evasions.jsonl")


def test_a_forbidden_call_is_stopped_however_it_is_written_and_its_neighbour_is_not() -> None:
    wrong = []
    for row in EVASIONS:
        rule, tool, directory = row["rule"], row["tool"], row.get("directory", "")
        allowed = said_to(rule, tool, row["call"], directory) == "allow"
        if allowed != (row["expected"] == "limit") or not (row["expected"] == "stopped" or row["why"]):
            wrong.append((rule, row["way"], row["call"]))
        if said_to(rule, tool, row["neighbour"], directory) != "allow":
            wrong.append((rule, row["way"], row["neighbour"]))
    assert wrong == []


def test_a_call_that_names_the_target_elsewhere_is_not_stopped() -> None:
    wrong = []
    for row in rows("guard_neighbours.jsonl"):
        wrong += [(row["said"], call) for call in row["passed"] if said_to(row["said"], *call) != "allow"]
        if row["stopped"] is not None and said_to(row["said"], *row["stopped"]) == "allow":
            wrong.append((row["said"], row["stopped"]))
    assert wrong == []


_SHELL = """\
$( | ` | ' | " | ( | ) | {_ | \\ | <( | $' | sh_-c_' | a_|_ | a_>_ | <<a\\n | <<a_ | \\na\\n | <<< | $x | ${x | ${x:- |
x=$x$x; | x=aa; | alias_a='a_a'; | a; | cd_a; | {a,b} | echo_a_|_sh; | eval_a; | git_-c_alias.a=a_a; | '\\n'<<b_ |
env_-S_ | f=`a`; | $(echo_$(echo_a)) | printf_%s_a| | base64_-d| | find_._-exec_ | docker_exec_a_ | cat_<<E|sh\\n |
echo_a_|_xargs_rm; | for_f_in_a_b;do_$f;done; | sudo_A=1_ | pushd_a; | parallel_rm_:::_a_ | cat_<_a; | rm_a/../b_"""
PIECES = [piece.strip().replace("_", " ").replace("\\n", "\n") for piece in _SHELL.replace("\n", " ").split(" | ")]


@pytest.mark.slow
@pytest.mark.parametrize("other", ["", "cd a;", "\\", "'\n'<<b "])
def test_four_times_a_shell_text_costs_about_four_times_the_time(other: str) -> None:
    def read(unit: str, size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        return lambda: simple_commands(text)

    assert [piece for piece in PIECES if not grows_at_most(8, partial(read, piece + other), 3_000, 12_000)] == []


def test_variables_aliases_and_here_documents_cannot_blow_a_text_up() -> None:
    begun = time.process_time()
    for text in (
        "x=" + "a " * 1500 + ";" + "$x " * 20_000,
        "x=aaaa;" + "x=$x$x;" * 2_000 + "echo $x",
        "alias a='b b b b'; alias b='a a a a';" + "a;" * 5_000,
        "echo 'sh <<< x' > f; " + "sh f;" * 10_000,
        "{a,b}{c,d}{e,f}{g,h}" * 2_000,
        "git -c alias.a='!git -c alias.a=!a a' a;" * 2_000,
    ):
        simple_commands(text)
    assert time.process_time() - begun < 20
