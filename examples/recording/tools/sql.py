"""`sql_query`: read-only SQL on a generated SQLite file, through apsw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from examples.recording.tools.shop import Shop
from examples.recording.tools.tool import Answer, Arguments, Tool, done, failure, object_schema

_SCHEMA = """
CREATE TABLE customers(customer_id INTEGER PRIMARY KEY, full_name TEXT, email TEXT, city TEXT, country TEXT,
                       signup_date TEXT);
CREATE TABLE products(product_id INTEGER PRIMARY KEY, title TEXT, category TEXT, unit_price REAL, stock INTEGER);
CREATE TABLE orders(order_id INTEGER PRIMARY KEY, customer_id INTEGER, placed_on TEXT, status TEXT, ship_city TEXT);
CREATE TABLE order_lines(order_id INTEGER, product_id INTEGER, quantity INTEGER, unit_price REAL);
CREATE TABLE suppliers(supplier_id INTEGER PRIMARY KEY, company TEXT, country TEXT, rating REAL);
CREATE TABLE error_log(log_id INTEGER PRIMARY KEY, logged_at TEXT, level TEXT, message TEXT);
"""
_BUSY_TIMEOUT = 15  # milliseconds; short, because a recorded lock never goes away by itself


class Database:
    """The shop's database: a reader for the tool, and a second connection that can really hold a lock."""

    def __init__(self, path: Path, shop: Shop) -> None:
        self._writer = apsw.Connection(str(path))
        self._writer.execute(_SCHEMA)
        rows: dict[str, list[Any]] = {
            "customers": shop.customers,
            "products": shop.products,
            "orders": shop.orders,
            "order_lines": shop.order_lines,
            "suppliers": shop.suppliers,
            "error_log": shop.error_log,
        }
        with self._writer:
            for table, values in rows.items():
                marks = ",".join("?" * len(values[0]))
                self._writer.executemany(f"INSERT INTO {table} VALUES({marks})", values)
        self.reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.reader.set_busy_timeout(_BUSY_TIMEOUT)

    def lock(self) -> None:
        """An import is running: nobody else may read."""
        self._writer.execute("BEGIN EXCLUSIVE")

    def unlock(self) -> None:
        self._writer.execute("ROLLBACK")

    def close(self) -> None:
        self.reader.close()
        self._writer.close()


class SqlQuery(Tool):
    name = "sql_query"
    description = (
        "Run one SQL statement on the shop's SQLite database and get the rows. The connection is read-only. "
        "Dates are stored as text, YYYY-MM-DD."
    )
    parameters = object_schema(
        ("query",),
        query={"type": "string", "description": "One SQLite SELECT or PRAGMA statement."},
        max_rows={
            "type": "integer",
            "minimum": 1,
            "maximum": 200,
            "default": 50,
            "description": "Rows shown at most.",
        },
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, arguments: Arguments) -> Answer:
        limit = int(arguments.get("max_rows", 50))
        try:
            cursor = self._database.reader.execute(arguments["query"])
            names: list[str] = []
            rows: list[tuple[Any, ...]] = []
            more = False
            for row in cursor:
                if not names:
                    names = [column[0] for column in cursor.get_description()]
                if len(rows) == limit:
                    more = True
                    cursor.close(True)
                    break
                rows.append(row)
        except apsw.BusyError as error:
            return failure(f"BusyError: {error}", fault="database_locked")
        except apsw.Error as error:
            return failure(f"{type(error).__name__}: {error}")
        if not rows:
            return done("(0 rows)", useful=False)
        return done(_table(names, rows, more))


def _table(names: list[str], rows: list[tuple[Any, ...]], more: bool) -> str:
    lines = [" | ".join(names)]
    lines += [" | ".join("NULL" if cell is None else str(cell) for cell in row) for row in rows]
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    lines.append(f"(first {count}, there are more)" if more else f"({count})")
    return "\n".join(lines)
