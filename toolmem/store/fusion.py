"""Reciprocal rank fusion: how the legs of a search become one list, the same for every backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolmem.stored import Hit

RANK_CONSTANT = 60  # k in Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion ...", SIGIR 2009


def leg_depth(top_k: int) -> int:
    """How many of the best each leg hands over: more than asked, so that a document that is fair in both legs can
    beat one that is good in one."""
    return max(100, 10 * top_k)


def fuse(text: Sequence[str], vector: Sequence[str], similarity: Mapping[str, float | None], top_k: int) -> list[Hit]:
    """`text` and `vector`: keys, best first. A document scores the sum of 1 / (k + rank) over the legs that found it;
    equal scores are ordered by key."""
    text_rank = {key: rank for rank, key in enumerate(text, 1)}
    vector_rank = {key: rank for rank, key in enumerate(vector, 1)}
    score: dict[str, float] = {}
    for ranks in (text_rank, vector_rank):
        for key, rank in ranks.items():
            score[key] = score.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    best = sorted(score, key=lambda key: (-score[key], key))[: max(top_k, 0)]
    return [Hit(key, score[key], similarity.get(key), text_rank.get(key), vector_rank.get(key)) for key in best]
