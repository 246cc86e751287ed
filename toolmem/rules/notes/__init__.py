"""Demands that a model noted: checked against what the user said, and kept as rules.

`note` reads what a model wrote, `verify` decides whether it can be kept: `quotes` looks for the
quote in what the user typed, `width` checks that the condition is no wider than the quote, with
`numbers` of the sentence and calls of everyday work (`ordinary_calls.txt`). `keep` makes rules of
a note, and lifts the rules of a demand that was taken back.
"""

from functools import cache
from pathlib import Path


@cache
def contract() -> str:
    """The instructions for a model that notes demands."""
    return Path(__file__).with_name("contract.md").read_text(encoding="utf-8").strip()
