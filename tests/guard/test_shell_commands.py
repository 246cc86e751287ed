"""Wrappers, pipes, quotes and substitutions hide no program; what cannot be taken apart is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolmem.guard.decision import CheckedRule, against_rules
from toolmem.guard.shell_commands import simple_commands
from toolmem.guard.view import view_of
from toolmem.sentences.schemas import command

NO_RM = CheckedRule("r", "never use rm", "deny", command(("rm",)))


def verdict(text: str, rule: CheckedRule = NO_RM, directory: Path | None = None) -> str:
    found = against_rules([rule], view_of("bash", {"command": text}, directory=directory), "enforce")
    return found[0].action if found else "allow"


@pytest.mark.parametrize(
    "text",
    [
        "rm x",
        "/bin/rm x",
        "sudo rm x",
        "sudo -u root rm x",
        "env A=1 B=2 rm x",
        "A=1 rm x",
        "nice -n 5 rm x",
        "timeout 5 rm x",
        "timeout -k 1 5 rm x",
        "nohup rm x &",
        "command rm x",
        "exec rm x",
        "busybox rm x",
        "time rm x",
        "ls | xargs rm",
        "ls | xargs -n 1 rm",
        "find . -name x -exec rm {} +",
        "find . -execdir rm {} ';'",
        "true && rm x",
        "true; rm x",
        "false || rm x",
        "true\nrm x",
        "(cd a && rm x)",
        "{ rm x; }",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "$(rm x)"',
        "diff <(rm x) b",
        "sh -c 'rm x'",
        "bash -lc 'rm x'",
        "bash -c \"sh -c 'rm x'\"",
        "eval 'rm x'",
        "r\\m x",
        "'rm' x",
        'r""m x',
        "$'rm' x",
        "$'\\x72m' x",
        "for f in *; do rm $f; done",
        "if true; then rm x; fi",
        "while read f; do rm $f; done < list",
        "rm\tx",
        "ｒｍ x",
        "r\u200bm x",
        "ls 2>&1 | tee log; rm x",
        "ls &> log; rm x",
        "RM=1 /usr/bin/rm -f x # tidy",
    ],
)
def test_a_program_is_found_however_it_is_written(text: str) -> None:
    assert verdict(text) == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "$(which rm) x",
        'eval "$CMD" # rm',
        'sh -c "$X" rm',
        "echo 'rm x' | sh",
        "$RM x; echo rm",
    ],
)
def test_a_command_that_hides_and_holds_the_program_is_asked_about(text: str) -> None:
    assert verdict(text) in {"ask", "deny"}


@pytest.mark.parametrize(
    "text",
    [
        "echo rm x",
        "grep rm log",
        "git commit -m 'rm x'",
        "echo 'rm x'",
        "man rm",
        "rmdir-like x",
        "ls # rm x",
        "cat rm",
        "git rm --cached x",
        "echo hello | sh",
    ],
)
def test_a_harmless_neighbour_is_not_stopped(text: str) -> None:
    assert verdict(text) == "allow"


def test_the_branch_of_a_push_is_read_from_the_repository(tmp_path: Path) -> None:
    no_push = CheckedRule("r", "never push to main", "deny", push_to("main"))
    (tmp_path / ".git").mkdir()
    head = tmp_path / ".git" / "HEAD"
    head.write_text("ref: refs/heads/main\n", encoding="utf-8")
    for text in ("git push", "git push origin", "git push origin HEAD", "git push -u origin @"):
        assert verdict(text, no_push, tmp_path) == "deny"
    head.write_text("ref: refs/heads/dev\n", encoding="utf-8")
    assert verdict("git push", no_push, tmp_path) == "allow"
    head.write_text("0123456789abcdef\n", encoding="utf-8")
    assert verdict("git push", no_push, tmp_path) == "ask"
    assert verdict("git push --mirror", no_push, tmp_path) == "ask"
    assert verdict("git push", no_push, None) == "ask"
    for text in ("git push origin dev:main", "git push origin +main", "git push origin :main", "git push o a main"):
        assert verdict(text, no_push, None) == "deny"
    for text in ("git push origin main:dev", "git push origin feature/main-menu", "git log main", "git push --tags o"):
        assert verdict(text, no_push, None) == "allow"


def push_to(branch: str) -> dict[str, object]:
    from toolmem.sentences.said_literals import Demand, LiteralValue
    from toolmem.sentences.schemas import shell_condition

    made = shell_condition(Demand(effect="deny", families={"push"}, literals=[LiteralValue("word", branch)]))
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("echo a > x", ["x"]),
        ("echo a >> x", ["x"]),
        ("echo a 2> err", ["err"]),
        ("ls 2>&1", []),
        ("cat < in > out", ["out"]),
        ("tee a b", ["a", "b"]),
        ("cp a b", ["b"]),
        ("mv a b", ["a", "b"]),
        ("sed -i s/a/b/ x", ["x"]),
        ("chmod 600 x", ["x"]),
        ("cat <<EOF > x\nhi\nEOF", ["x"]),
    ],
)
def test_the_files_that_a_command_writes_are_named(text: str, files: list[str]) -> None:
    assert [each.words[1] for each in simple_commands(text) if each.words[0] == ">"] == files


@pytest.mark.parametrize("opener", ["$(", "`", "'", '"', "(", "{ ", "\\", "<(", "$'", "sh -c '", "a | ", "a > "])
def test_what_is_opened_and_never_closed_costs_linear_time(opener: str) -> None:
    simple_commands(opener * 20_000)
