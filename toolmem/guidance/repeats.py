"""Calls that repeat, word for word, a call that failed earlier in the same conversation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Repeats:
    """Positions of the calls that repeat a failed one, by how they ended."""

    failed: tuple[int, ...]
    succeeded: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.failed) + len(self.succeeded)


def repeats_of_failures(
    outcomes: Sequence[bool | None], groups: Sequence[Sequence[int]], identity: Sequence[Hashable]
) -> Repeats:
    """`outcomes`: True = the call did not fail; `identity`: equal for calls with the same input."""
    failed: list[int] = []
    succeeded: list[int] = []
    for group in groups:
        failed_before: set[Hashable] = set()
        for position in group:
            outcome, given = outcomes[position], identity[position]
            if given in failed_before and outcome is not None:
                (succeeded if outcome else failed).append(position)
            if outcome is False:
                failed_before.add(given)
    return Repeats(tuple(sorted(failed)), tuple(sorted(succeeded)))
