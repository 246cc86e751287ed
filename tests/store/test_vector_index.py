"""The in-memory vectors stay what the file holds, and rank as the plain product does."""

from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.protocols import EmbedderIdentity
from toolmem.store.searching import fuse, leg_depth, unit_vector
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.connection import MEMORY, open_writer, read_transaction, write_transaction
from toolmem.store.sqlite.search import VectorCache
from toolmem.store.sqlite.vector_index import VectorIndex
from toolmem.stored import Document

EMBEDDER = EmbedderIdentity("test", "axes", 3)
KEYS = st.sampled_from("abcdefgh")
NUMBERS = st.tuples(*[st.integers(-3, 3)] * 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, NUMBERS),
        st.tuples(st.just("bare"), KEYS, st.none()),
        st.tuples(st.just("remove"), KEYS, st.none()),
        st.tuples(st.just("search"), st.none(), st.none()),
    ),
    max_size=30,
)
QUERY = unit_vector(np.array([1, 2, -1], dtype=np.float32), EMBEDDER, "vector")


def put(db: apsw.Connection, key: str, numbers: tuple[int, ...] | None, workspace: int = 1) -> None:
    vector = None if numbers is None else np.array(numbers, dtype=np.float32)
    with write_transaction(db):
        documents.write(db, workspace, documents.RECORDS, "n", key, Document("text", vector), 0, EMBEDDER)


def remove(db: apsw.Connection, key: str) -> None:
    with write_transaction(db):
        documents.remove(db, 1, documents.RECORDS, "n", key)


def found(db: apsw.Connection, cache: VectorCache, scope: int = 1, depth: int = 99) -> list[str]:
    with read_transaction(db):
        return [key for key, _ in cache.current(db, scope, 3, EMBEDDER).nearest(QUERY, depth, None)]


def kept(numbers: tuple[int, ...]) -> np.ndarray:
    """As the store keeps it, at the length of one and in single precision: cosines that only nearly tie do not tie."""
    return unit_vector(np.array(numbers, dtype=np.float32), EMBEDDER, "vector").astype(np.float64)


@given(STEPS)
def test_an_index_kept_current_ranks_as_one_loaded_anew(steps):
    db = open_writer(MEMORY, "NORMAL", 1)
    put(db, "first", (1, 0, 0))
    cache, held = VectorCache(), {"first": (1, 0, 0)}
    for step, key, numbers in [*steps, ("search", None, None)]:
        if step == "search":
            cosines = {
                key: round(float(kept(vector) @ QUERY.astype(np.float64)), 9)
                for key, vector in held.items()
                if any(vector)
            }
            assert found(db, cache) == found(db, VectorCache()) == sorted(cosines, key=lambda k: (-cosines[k], k))
        elif step == "remove":
            remove(db, key)
            held.pop(key, None)
        else:
            put(db, key, numbers)
            held.pop(key, None)
            if numbers is not None:
                held[key] = numbers
    db.close()


def test_the_cache_forgets_the_scope_that_was_used_longest_ago():
    db = open_writer(MEMORY, "NORMAL", 1)
    for workspace in (1, 2, 3):
        put(db, f"of {workspace}", (1, 0, 0), workspace)
    cache = VectorCache(capacity_bytes=2 * 16 * 3 * 4)
    for scope in (1, 2, 1, 3, 2):
        assert found(db, cache, scope) == [f"of {scope}"]
    assert list(cache._indexes) == [3, 2]
    db.close()


def test_loading_happens_once_and_later_queries_read_only_what_is_new(tmp_path: Path):
    db = open_writer(str(tmp_path / "memory.db"), "NORMAL", 1)
    for n in range(50):
        put(db, f"{n}", (n % 5 - 2, 1, 1))
    cache = VectorCache()
    found(db, cache)
    taken: list[int] = []
    take = VectorIndex._take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VectorIndex, "_take", lambda self, rows: (taken.append(len(rows)), take(self, rows))[1])
        found(db, cache)
        put(db, "7", (0, 0, 1))
        put(db, "new", (0, 0, 1))
        found(db, cache)
        found(db, cache)
    assert taken == [2]
    db.close()


def test_filters_choose_rows_of_the_matrix():
    db = open_writer(MEMORY, "NORMAL", 1)
    for n in range(20):
        put(db, f"{n:02}", (n, 1, 0))
    with read_transaction(db):
        index = VectorCache().current(db, 1, 3, EMBEDDER)
        assert [key for key, _ in index.nearest(QUERY, 2, {3, 5, 999})] == ["02", "04"]
        assert index.nearest(QUERY, 5, set()) == []
    db.close()


@given(
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.integers(0, 12),
)
def test_fusion_scores_by_reciprocal_rank_and_orders_ties_by_key(text: list[str], vector: list[str], top_k: int):
    hits = fuse(text, vector, {}, top_k)
    everything = fuse(text, vector, {}, 99)
    assert hits == everything[:top_k]
    assert {hit.key for hit in everything} == {*text, *vector}
    assert [(-hit.score, hit.key) for hit in everything] == sorted((-hit.score, hit.key) for hit in everything)
    for hit in everything:
        ranks = [leg.index(hit.key) + 1 for leg in (text, vector) if hit.key in leg]
        assert hit.score == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


def test_each_leg_hands_over_more_than_was_asked_for():
    assert leg_depth(5) == 100
    assert leg_depth(50) == 500
