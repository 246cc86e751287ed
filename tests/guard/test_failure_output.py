"""What a failed call wrote: which line says why, whether tests failed, whether it changed something all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.processor_time import takes_less_than
from toolmem.guard.failure_output import says_it_changed, says_not_yet, says_tests_failed, without_exit_code


@pytest.mark.parametrize(
    ("output", "said", "code"),
    [
        ("Exit code 2\nboom", "boom", "Exit code 2"),
        ("boom\n\nCommand exited with code 1", "boom", "Command exited with code 1"),
        ("Exit code 1", "", "Exit code 1"),
        ("", "", ""),
        ("\nProcess exited with code 127.\n", "", "Process exited with code 127."),
        ("<shellId: 3 completed with exit code 2>", "", "<shellId: 3 completed with exit code 2>"),
        ("Error: command failed with exit status 1", "", "Error: command failed with exit status 1"),
        ("a.c:3: error: exit code was lost", "a.c:3: error: exit code was lost", ""),
        ("no such file", "no such file", ""),
    ],
)
def test_an_exit_code_is_told_apart_from_what_is_said(output: str, said: str, code: str) -> None:
    assert without_exit_code(output) == (said, code)


@pytest.mark.parametrize(
    "output",
    [
        "1 failed, 3 passed in 0.2s",
        "Tests:       2 failed, 12 passed, 14 total",
        "test result: FAILED. 11 passed; 1 failed; 0 ignored",
        "--- FAIL: TestAdds (0.00s)\nFAIL",
        "FAILED (failures=1, errors=2)",
        "Tests run: 4, Failures: 1, Errors: 0, Skipped: 0",
        "  3 passing (12ms)\n  1 failing",
        "12 examples, 1 failure",
        "2 of 14 tests failed",
        "not ok 3 - adds",
        "FAIL: test_adds (tests.test_a.Adds)",
        "There were failing tests. See the report at: file:///p/build/index.html",
        "# tests 12\n# pass 11\n# fail 1",
        "2 个用例未通过",
        "  py311: FAIL code 1 (2.1=setup[1]+cmd[1.1] seconds)",
        "//a:t FAILED in 3 out of 3 in 0.1s",
        "Failed!  - Failed:     1, Passed:    12",
        "x\n" * 9000 + "5 scenarios have failed",
    ],
)
def test_a_runner_of_tests_says_that_tests_failed(output: str) -> None:
    assert says_tests_failed(output)


@pytest.mark.parametrize(
    "output", ["cat: x: No such file", "0 failed, 3 passed", "Failures: 0", "make: *** [all] Error 2", "build failed"]
)
def test_another_error_says_nothing_of_tests(output: str) -> None:
    assert not says_tests_failed(output)


@pytest.mark.parametrize(
    "output",
    [
        "- files were modified by this hook",
        "reformatted src/a.py",
        "2 files reformatted, 3 files left unchanged",
        "Found 5 errors (3 fixed, 2 remaining).",
        "Fixing tests/a.py",
        "Formatted 2 files",
        "Applied 3 fixes",
        "2 problems fixed",
        "Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py",
    ],
)
def test_what_failed_by_changing_something_says_so(output: str) -> None:
    assert says_it_changed(output)


@pytest.mark.parametrize("output", ["would reformat a.py", "0 fixed", "error: no file was found", "3 errors"])
def test_what_changed_nothing_does_not(output: str) -> None:
    assert not says_it_changed(output)


@pytest.mark.parametrize(
    "output", ["Error: build 12 is still running", "Status: in progress", "the image is not ready", "构建正在运行"]
)
def test_what_waits_for_something_elsewhere_says_so(output: str) -> None:
    assert says_not_yet(output)
    assert not says_not_yet("cat: x: No such file")


@pytest.mark.parametrize("part", ["1 failed ", "Exit code 1\n", "\n", "FAIL", "fixed 1 a", "9" * 7 + " "])
def test_reading_takes_no_longer_than_an_output_is_looked_at(part: str) -> None:
    output = part * (3_000_000 // len(part))
    readers: tuple[Callable[[str], object], ...] = (
        without_exit_code,
        says_tests_failed,
        says_not_yet,
        says_it_changed,
    )
    assert takes_less_than(1, lambda: [read(output) for read in readers])
