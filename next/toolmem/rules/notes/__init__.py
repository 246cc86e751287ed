"""Demands that a model noted: checked against what the user said, and kept as rules.

`note` is what a model writes, `verify` decides whether it can be kept: `quotes` looks for the words
in what the user typed, `width` asks whether the condition says more than they do (`numbers` reads
the numbers of a sentence, `ordinary_calls.txt` holds calls that nobody means). `keep` makes rules
of a note, and follows a note that takes one back; `ask_model` has a chat model write notes.
"""
