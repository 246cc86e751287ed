"""What lets one operand of a command through lets no other through; a program is the same however it is started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from toolmem.guard.alternatives import read_conditions
from toolmem.guard.compiled_conditions import CompiledConditions
from toolmem.guard.view import view_of

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def stops(command: str, when: dict[str, Any], *unless: dict[str, Any]) -> bool:
    conditions = CompiledConditions(read_conditions([when], list(unless)))
    return conditions.hold(view_of("Bash", {"command": command}), NOON)


@pytest.mark.parametrize("command", ["rm /tmp/a /srv/b", "rm -rf /srv/b /tmp/a", "cd /srv && rm b /tmp/a", "rm /srv/b"])
def test_a_file_beside_one_that_may_be_deleted_may_not(command: str) -> None:
    assert stops(command, {"command": "^rm"}, {"path": "^/tmp/"})


@pytest.mark.parametrize(
    "command", ["rm /tmp/a", "rm -rf /tmp/a /tmp/b/c", "cd /tmp && rm a b", "sudo rm /tmp/a /tmp/b"]
)
def test_files_that_may_all_be_deleted_may_be_deleted_together(command: str) -> None:
    assert not stops(command, {"command": "^rm"}, {"path": "^/tmp/"})


def test_an_address_beside_one_that_may_be_fetched_may_not() -> None:
    local = {"target": r"^(https?://)?localhost([:/]|$)"}
    assert stops("curl http://localhost:80 https://example.com", {"command": "^curl"}, local)
    assert not stops("curl -H 'Referer: https://example.com' http://localhost/a", {"command": "^curl"}, local)
    assert not stops("curl -X POST localhost:3000/a -d '{}'", {"command": "^curl"}, local)


@pytest.mark.parametrize(
    "command",
    [
        "python -m pip install x",
        "sudo python3 -W ignore -m pip install x",
        "python3.12 -I -m pip install x",
        "uv run pip install x",
    ],
)
def test_a_module_or_package_that_is_run_is_its_program(command: str) -> None:
    assert stops(command, {"command": "^pip install"})


@pytest.mark.parametrize("command", ["npx eslint --fix .", "pnpm dlx eslint --fix .", "npm exec -- eslint --fix ."])
def test_a_program_of_a_package_is_read_behind_what_fetches_it(command: str) -> None:
    assert stops(command, {"command": r"^eslint .*--fix"})


@pytest.mark.parametrize("command", ["python -m venv pip", "python pip.py", "npx --help", "python -m", "npm exec"])
def test_what_runs_no_other_program_is_only_itself(command: str) -> None:
    assert not stops(command, {"command": "^pip"})


def test_tests_that_python_runs_as_a_module_count_as_run() -> None:
    order = {"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}
    assert not stops("python -m pytest -q && git push", {"command": "^git push"}, order)
    assert stops("python -m pytest -q; git push", {"command": "^git push"}, order)


def test_words_that_are_only_printed_are_no_files() -> None:
    assert not stops("echo .env >> .gitignore", {"path": r"(^|/)\.env$"})
    assert stops("echo x >> .env", {"path": r"(^|/)\.env$"})
    assert stops("echo .env | xargs rm", {"path": r"(^|/)\.env$"})
