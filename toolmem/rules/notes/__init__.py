"""Demands that a model noted: checked against what the user said, and kept as rules.

`note` is what a model writes, `verify` decides whether it can be kept: `quotes` looks for the words
in what the user typed, `width` asks whether the condition says more than they do (`numbers` reads
the numbers of a sentence, `ordinary_calls.txt` holds calls that nobody means). `keep` makes rules
of a note, and follows a note that takes one back.
"""

from functools import cache
from pathlib import Path


@cache
def contract() -> str:
    """What a model is told of noting demands."""
    return Path(__file__).with_name("contract.md").read_text(encoding="utf-8").strip()
