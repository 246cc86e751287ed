"""Stores that are files, whatever else the protocol is tried on."""

import sqlite3

import pytest

from toolmem.store.sqlite import SqliteStore


@pytest.fixture
def store(path):
    with SqliteStore(path) as opened:
        yield opened


def written(path, *statements):
    """Statements of another program in a database."""
    database = sqlite3.connect(path)
    with database:
        for each in statements:
            database.execute(each)
    database.close()
