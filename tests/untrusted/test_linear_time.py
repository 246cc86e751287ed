"""Every reader of untrusted text takes time in proportion to its length: twice the text, at most 2.5 times the CPU."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from toolmem.rules.decrees import find_decrees
from toolmem.rules.sentences import sentences

SIZES = (10_000, 20_000, 40_000, 80_000)  # characters
MOST = 2.5  # times the CPU for twice the text
# Seconds of CPU that say nothing. What is quadratic takes several seconds for 80,000 characters.
NOISE = 0.05
ATTEMPTS = 8  # the best of them counts: a busy machine makes a run slower, never quicker

# A reader of text that somebody else wrote. A new one is entered here: a name, and a function of the text.
READERS: dict[str, Callable[[str], object]] = {
    "sentences of a message": lambda text: list(sentences(text)),
    "demands of a message": lambda text: find_decrees(text, ran=["send_email"], catalogue=["bash", "web_search"]),
}

# What is repeated, once with a start and an end of another kind.
UNITS = {
    "full stops": ".",
    "question marks": "?",
    "exclamation marks": "!",
    "ellipses": "…",
    "colons": ":",
    "wide colons": "：",
    "wide commas": "，",
    "wide question marks": "？",
    "commas": ",",
    "spaces": " ",
    "wide spaces": "\u3000",
    "tabs": "\t",
    "line breaks": "\n",
    "lines of Windows": "a\r\n",
    "double quotes": '"',
    "single quotes": "'",
    "curly quotes": "“",
    "backticks": "`",
    "backslashes": "\\",
    "escaped quotes": "\\'",
    "escaped double quotes": '\\"',
    "ampersands": "&",
    "alternations": "a|",
    "hashes": "#",
    "hyphens": "-",
    "underscores": "_",
    "equals signs": "=",
    "stars": "*",
    "slashes": "/",
    "at signs": "a@",
    "opening brackets": "[",
    "opening braces": "{",
    "opening parentheses": "(",
    "closing brackets": "]",
    "empty lists": "[],",
    "keys of JSON": '{"a":',
    "errors in JSON": '{"error": "',
    "keys of Python": "{'a': ",
    "digits": "1",
    "letters": "a",
    "words": "a b ",
    "names with digits": "ab12_",
    "humps": "aA",
    "Chinese characters": "错",
    "Chinese demands": "以后不要",
    "demands": "never email Sarah ::::: again ",
    "conditions": "if you must not ask me before ",
    "quoted replies": "> a\n",
    "quotations of mail": "on a b c wrote:\n",
    "speakers": "Bob: a\n",
    "log lines": "[ERROR] x\n",
    "fences": "```\n",
    "comments of SQL": "/*",
    "dashes of SQL": "-- a\n",
    "subqueries": "(SELECT a FROM ",
    "cases": "CASE ",
    "joined tables": "JOIN a ",
    "here-documents": "<<EOF\n",
    "substitutions": "$(",
    "wildcards": "a* ",
    "redirections": "a > ",
    "base64": "QUJDREVGR0g=",
    "HTML tags": "<div>",
    "opened HTML tags": "<a ",
    "titles": "<title>",
    "thoughts": "<think>",
    "links": "http://a/",
    "query strings": "?a=",
    "fields of a query string": "&a=",
    "statuses": "HTTP 404 ",
    "exit codes": "exit code ",
    "errors": "Error: ",
    "tracebacks": "Traceback (most recent call last):\n",
    "complaints of a shell": "bash: line 1: a: ",
    "missing parameters": "missing required parameter ",
    "UUIDs": "123e4567-e89b-12d3-a456-426614174000 ",
    "paths": "../a",
    "interpolations": "${oc.env:",
    "zero-width spaces": "\u200b",
    "combining marks": "a\u0301",
    "zeros": "\0",
}


def _texts() -> Iterator[tuple[str, Callable[[int], str]]]:
    for name, unit in UNITS.items():
        for start, end in (("", ""), ("x", "x")):
            yield (
                f"{name}{' inside a text' if start else ''}",
                lambda n, unit=unit, start=start, end=end: start + (unit * (n // len(unit) + 1))[: n - 2] + end,
            )


@pytest.mark.parametrize("reader", READERS)
def test_reading_twice_the_text_takes_at_most_two_and_a_half_times_as_long(reader: str) -> None:
    read = READERS[reader]
    for name, text in _texts():
        # Most are done at once, however long they are; those alone that take a while are measured step by step.
        if _seconds(read, text(SIZES[0])) * SIZES[-1] / SIZES[0] < NOISE and _seconds(read, text(SIZES[-1])) < NOISE:
            continue
        for smaller, larger in itertools.pairwise(SIZES):
            short, long = _measured(read, text, smaller, larger)
            assert long < NOISE or long <= MOST * short, (
                f"{name}: {short:.3f} s for {smaller}, {long:.3f} s for {larger}"
            )


def _measured(
    read: Callable[[str], object], text: Callable[[int], str], smaller: int, larger: int
) -> tuple[float, float]:
    """The least CPU for each length. A text is never read twice, as a reader may remember what it read."""
    short = long = float("inf")
    for attempt in range(ATTEMPTS):
        short = min(short, _seconds(read, text(smaller - attempt)))
        long = min(long, _seconds(read, text(larger - attempt)))
        if long < NOISE or long <= MOST * short or long > 100 * NOISE:
            break
    return short, long


def _seconds(read: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    read(text)
    return time.process_time() - begun
