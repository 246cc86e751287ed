"""A name is held missing only where an error or a whole listing says so, and until something contradicts it."""

from __future__ import annotations

import pytest

from toolmem.guard.known_names import KnownNames
from toolmem.guard.sql_names import read_names

NO_TABLE = "Error 1146: Table 'db.poker_players' doesn't exist"


def names_of(*learned: tuple[str, str, bool]) -> KnownNames:
    known = KnownNames()
    for statement, output, failed in learned:
        known.learn(statement, output, failed=failed)
    return known


def missing(known: KnownNames, statement: str) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in known.against(statement)]


def test_a_table_that_an_error_named_is_known_to_be_missing() -> None:
    known = names_of(("SELECT * FROM poker_players", NO_TABLE, True))
    assert missing(known, "SELECT name FROM poker_players WHERE a = 1") == [("table", "poker_players")]
    assert missing(known, "SELECT 'poker_players' FROM people") == []
    assert missing(known, "SELECT * FROM other.poker_players") == []
    assert missing(known, "WITH poker_players AS (SELECT 1) SELECT * FROM poker_players") == []


@pytest.mark.parametrize("statement", ["CREATE TABLE poker_players (a INT)", "ALTER TABLE x ADD a INT", "DROP TABLE x"])
def test_a_change_of_the_schema_wipes_what_is_known(statement: str) -> None:
    known = names_of(("SELECT * FROM poker_players", NO_TABLE, True), (statement, "", False))
    assert missing(known, "SELECT * FROM poker_players") == []


def test_a_query_that_works_with_the_name_contradicts_the_error() -> None:
    known = names_of(("SELECT * FROM poker_players", NO_TABLE, True), ("SELECT * FROM poker_players", "[]", False))
    assert missing(known, "SELECT * FROM poker_players") == []


def test_only_a_whole_listing_says_what_is_not_there() -> None:
    whole = names_of(("SHOW TABLES", "[('people',), ('poker_player',)]", False))
    cut = names_of(("SHOW TABLES", "[('people',), ('poker_pl", False))
    assert missing(whole, "SELECT * FROM poker_players") == [("table", "poker_players")]
    assert missing(whole, "SELECT * FROM people") == []
    assert missing(cut, "SELECT * FROM poker_players") == []


def test_a_missing_column_is_held_for_the_tables_that_were_read() -> None:
    known = names_of(("SELECT age FROM a JOIN b ON a.x = b.x", "Unknown column 'age' in 'field list'", True))
    assert missing(known, "SELECT age FROM a") == [("column", "age")]
    assert missing(known, "SELECT age FROM a, b") == [("column", "age")]
    assert missing(known, "SELECT age FROM a JOIN c ON a.x = c.x") == []
    assert missing(known, "SELECT age FROM a WHERE x IN (SELECT y FROM b)") == []


def test_a_qualified_column_is_held_for_its_table_under_whatever_alias() -> None:
    known = names_of(("SELECT T1.age FROM people AS T1", "Unknown column 'T1.age' in 'field list'", True))
    assert missing(known, "SELECT p.age FROM people p") == [("column", "age")]
    assert missing(known, "SELECT p.age FROM pets p, people q") == []


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("SELECT * FROM a", {"a": "a"}),
        ("SELECT * FROM a x", {"x": "a", "a": "a"}),
        ("SELECT * FROM a AS x JOIN b y ON x.i = y.i", {"x": "a", "a": "a", "y": "b", "b": "b"}),
        ("SELECT * FROM a, b, c WHERE 1", {"a": "a", "b": "b", "c": "c"}),
        ("SELECT * FROM a -- FROM z\nWHERE 1", {"a": "a"}),
        ("SELECT EXTRACT(YEAR FROM d) FROM a", {"a": "a"}),
        ("SELECT * FROM (SELECT * FROM a) t", {"a": "a"}),
        ("SELECT ' FROM z' FROM `A`", {"a": "a"}),
        ("DESCRIBE a", {"a": "a"}),
        ("SELECT", {}),
        ("", {}),
    ],
)
def test_tables_and_aliases_are_read(statement: str, tables: dict[str, str]) -> None:
    assert read_names(statement).tables == tables


def test_errors_of_other_databases_are_read_too() -> None:
    sqlite = names_of(("SELECT * FROM t", "sqlite3.OperationalError: no such table: t", True))
    postgres = names_of(("SELECT * FROM t", 'ERROR: relation "t" does not exist', True))
    assert missing(sqlite, "SELECT 1 FROM t") == missing(postgres, "SELECT 1 FROM t") == [("table", "t")]


# ---------------------------------------------------------------- paths and programs


def shell(*learned: tuple[str, str, bool]) -> KnownNames:
    return names_of(*learned)


NO_FILE = ("cat /etc/app.conf", "cat: /etc/app.conf: No such file or directory", True)
NO_JQ = ("jq . /data/x.json", "bash: line 1: jq: command not found", True)


def test_a_path_and_a_program_that_an_error_named_are_known_to_be_missing() -> None:
    known = shell(NO_FILE, NO_JQ)
    assert missing(known, "head -n 3 /etc/app.conf") == [("path", "/etc/app.conf")]
    assert missing(known, "jq .a /data/x.json") == [("program", "jq")]
    assert missing(known, "cat /etc/app.conf.bak; echo jq") == []
    again = KnownNames.from_json(known.as_json())
    assert missing(again, "head /etc/app.conf") == [("path", "/etc/app.conf")]


@pytest.mark.parametrize(
    "command", ["touch /etc/app.conf", "apt-get install jq", "./setup.sh", "echo x > /tmp/y", "mkdir -p /etc && ls"]
)
def test_a_command_that_may_have_written_wipes_what_is_known_of_paths_and_programs(command: str) -> None:
    known = shell(NO_FILE, NO_JQ, (command, "", False))
    assert missing(known, "cat /etc/app.conf") == []
    assert missing(known, "jq . /data/x.json") == []


def test_a_command_that_worked_contradicts_the_error() -> None:
    known = shell(NO_FILE, ("cat /etc/app.conf", "a=1", False))
    assert missing(known, "cat /etc/app.conf") == []


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat notes.txt", "cat: notes.txt: No such file or directory"),  # where? the working folder is not told
        ("grep -r x /var/log", "cat: /etc/app.conf: No such file or directory"),  # not a word of the command
        ("cat /data/*.txt", "cat: '/data/*.txt': No such file or directory"),
        ("eval $X", "cat: /etc/app.conf: No such file or directory"),
    ],
)
def test_what_an_error_does_not_say_of_a_word_of_the_command_is_not_learned(command: str, output: str) -> None:
    assert shell((command, output, True)).shell.no_path == {}


def test_what_writes_is_not_judged_by_a_path_that_is_missing() -> None:
    assert missing(shell(NO_FILE), "[ -f /etc/app.conf ] && cat /etc/app.conf") == []
    assert missing(shell(NO_FILE), "cat /etc/app.conf || echo none") == []
    assert missing(shell(NO_FILE), "touch /etc/app.conf") == []
    assert missing(shell(NO_FILE), "cp /tmp/a /etc/app.conf") == []
