from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.readers.sql import looks_like_sql, read_statement


@pytest.mark.parametrize(
    ("text", "kind", "form"),
    [
        ("select * from t", "SELECT", "SELECT"),
        ("  -- first\n SHOW TABLES;", "SHOW", "SHOW TABLES"),
        ("show columns from `t`", "SHOW", "SHOW COLUMNS"),
        ("DESC singer", "DESCRIBE", "DESCRIBE"),
        ("(SELECT 1)", "SELECT", "SELECT"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH", "WITH"),
        ("CREATE TABLE t (a int)", "CREATE", "CREATE TABLE"),
        ("Can you tell me which table to use?", "", ""),
        ("", "", ""),
    ],
)
def test_statement_kind_is_read_from_the_first_word(text: str, kind: str, form: str) -> None:
    statement = read_statement(text)
    assert (statement.kind, statement.form) == (kind, form)


def test_clauses_and_tables_are_found_outside_of_literals() -> None:
    statement = read_statement(
        "SELECT count(*) FROM Singer s JOIN concert AS c ON s.id = c.sid WHERE c.name = 'GROUP BY x JOIN y' "
        "AND s.id IN (SELECT id FROM band)"
    )
    assert statement.tables == {"singer", "concert", "band"}
    assert {"JOIN", "WHERE", "a subquery", "an aggregate function"} <= statement.clauses
    assert "GROUP BY" not in statement.clauses


def test_prose_has_no_clauses_and_does_not_look_like_sql() -> None:
    assert read_statement("I would JOIN the tables FROM the list").clauses == frozenset()
    assert not looks_like_sql("I would select a table")
    assert not looks_like_sql("show")
    assert looks_like_sql("show tables")


def test_the_same_query_on_other_names_has_the_same_skeleton() -> None:
    one, other = read_statement("SELECT a, b FROM t WHERE x = 'p'"), read_statement("SELECT c, d FROM u WHERE y = 'q'")
    assert one.skeleton == other.skeleton
    assert one.names != other.names


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    read_statement(text)
    looks_like_sql(text)
