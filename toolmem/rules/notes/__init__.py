"""Check the notes of a model against what the user said, and keep them as rules.

`note` reads what a model wrote, and `verify` decides whether it can be kept. For that, `quotes`
looks for the quote in what the user typed, and `width` checks that the condition is no wider than
the quote, by the `numbers` in it and by ordinary calls (`ordinary_calls.txt`). `keep` makes rules
of a note, and lifts the rules of a demand that was taken back.
"""

from functools import cache
from pathlib import Path


@cache
def contract() -> str:
    """Return the instructions for a model that notes demands."""
    return Path(__file__).with_name("contract.md").read_text(encoding="utf-8").strip()
