"""Read SQL by its words instead of its grammar, so that broken statements can be read as well."""

from __future__ import annotations

import re

from msgspec import Struct

from toolmem.text.forms import word_set
from toolmem.text.patterns import late_pattern

ANSWERING = word_set("SELECT SHOW DESCRIBE DESC EXPLAIN WITH VALUES")  # they return rows
CHANGING = word_set(
    "INSERT UPDATE DELETE CREATE DROP ALTER USE SET BEGIN COMMIT MERGE REPLACE TRUNCATE GRANT"
)
_STATEMENTS = (ANSWERING | CHANGING) | word_set(
    "PRAGMA ROLLBACK REVOKE CALL EXEC EXECUTE ANALYZE VACUUM ATTACH DECLARE"
)
_SAME_STATEMENT = {"DESC": "DESCRIBE", "EXEC": "EXECUTE"}
_KEYWORDS = _STATEMENTS | word_set(
    "FROM WHERE AND OR NOT IN IS NULL AS ON JOIN INNER LEFT RIGHT FULL OUTER CROSS NATURAL "
    "USING GROUP BY ORDER HAVING LIMIT OFFSET DISTINCT ALL UNION INTERSECT EXCEPT EXISTS "
    "BETWEEN LIKE ILIKE REGEXP CASE WHEN THEN ELSE END ASC INTO TABLE TABLES COLUMNS DATABASES "
    "DATABASE INDEX VIEW PRIMARY KEY FOREIGN REFERENCES DEFAULT IF COUNT SUM AVG MIN MAX CAST "
    "COALESCE CONCAT OVER PARTITION ROW_NUMBER RANK TRUE FALSE ANY SOME INTERVAL FULLTEXT "
    "FORMAT"
)
# A comment or string that is never closed goes on to the end, as a database reads it.
_NOISE = late_pattern(r"--[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|```\w*")
_STRING = late_pattern(r"'(?:[^'\\]|\\.|'')*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)", re.DOTALL)
_FIRST_WORD = late_pattern(r"[\s(`]*([A-Za-z_]+)")
_WORD = late_pattern(r"[A-Za-z_][\w$]*")
_TABLE = late_pattern(
    r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|(?:^|;)\s*(?:DESC|DESCRIBE)|COLUMNS\s+(?:FROM|IN))"
    r"\s+[`\"\[]?"
    r"([A-Za-z_][\w$.]*)",
    re.IGNORECASE,
)
_CLAUSES = {
    **{name: rf"\b{name}\b" for name in ("JOIN", "HAVING", "LIMIT", "WHERE", "DISTINCT")},
    "GROUP BY": r"\bGROUP\s+BY\b",
    "ORDER BY": r"\bORDER\s+BY\b",
    "SELECT *": r"\bSELECT\s+\*",
    "UNION/INTERSECT/EXCEPT": r"\b(?:UNION|INTERSECT|EXCEPT)\b",
    "LIKE": r"\b(?:I?LIKE|REGEXP|RLIKE)\b",
    "CASE": r"\A(?>.*?\bCASE\b).*\bEND\b",
    "INFORMATION_SCHEMA": r"\bINFORMATION_SCHEMA\b",
    "a subquery": r"\(\s*SELECT\b",
    "an aggregate function": r"\b(?:COUNT|SUM|AVG|MIN|MAX|GROUP_CONCAT)\s*\(",
    "a window function": r"\bOVER\s*\(",
    "several statements": r";\s*\S",
}


class Statement(Struct, frozen=True):
    """What was read of one SQL text: its kind, clauses, tables and names."""

    kind: str  # SELECT, SHOW, DESCRIBE, ...; "" where it does not begin with a statement
    form: str  # the kind, for some with the second word: "SHOW TABLES", "CREATE TABLE"
    clauses: frozenset[str]
    tables: frozenset[str]  # lower case
    names: frozenset[str]  # identifiers, lower case: tables, columns, aliases


def looks_like_sql(text: str) -> bool:
    """Whether a text begins with the keyword of a statement, followed by another word."""
    found = _FIRST_WORD.match(text[:200])
    is_named = found is not None and found[1].upper() in _STATEMENTS
    return is_named and len(text.split(None, 2)) > 1


def read_statement(text: str) -> Statement:
    """Read one SQL text. The caller must first cut it to a few thousand characters."""
    bare = _STRING.sub("'?'", _NOISE.sub(" ", text)).strip()
    words = _WORD.findall(bare)
    names = frozenset(word.lower() for word in words if word.upper() not in _KEYWORDS)
    first = words[0].upper() if words and _FIRST_WORD.match(bare) else ""
    if first not in _STATEMENTS:
        return Statement("", "", frozenset(), frozenset(), names)
    kind = _SAME_STATEMENT.get(first, first)
    second = words[1].upper() if len(words) > 1 else ""
    says_more = kind in {"SHOW", "CREATE", "DROP", "ALTER"} and second in _KEYWORDS
    form = f"{kind} {second}" if says_more else kind
    clauses = frozenset(
        name for name, clause in _CLAUSES.items() if re.search(clause, bare, re.I | re.DOTALL)
    )
    tables = {name.lower() for name in _TABLE.findall(bare) if name.upper() not in _KEYWORDS}
    return Statement(kind, form, clauses, frozenset(tables), names)
