"""Readers of untrusted text take time in proportion to its length: four times the text, at most 7 times as long."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tests.processor_time import ATTEMPTS, seconds_of, takes_less_than
from toolmem.config import hidden_values
from toolmem.config.environment import fill_in, read_dotenv
from toolmem.config.overrides import read_override
from toolmem.config.scalars import read_scalar
from toolmem.demands.said_numbers import numbers_said, speaks_of_time
from toolmem.errors import ToolMemError
from toolmem.formats import lines
from toolmem.guidance import writer_reply
from toolmem.guidance.counted import conditions, values
from toolmem.guidance.counted.analysis import analyze
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.judge.verdict_reply import read_verdict
from toolmem.models import ToolCallResult
from toolmem.providers.hashing import normalized
from toolmem.readers import error_classes, error_messages, json_values, plain_text, sql
from toolmem.readers.masking import SecretMask
from toolmem.readers.shell import read_command, signers
from toolmem.rules import identity
from toolmem.rules.capture.instructions import find_instructions
from toolmem.rules.capture.repeated_failures import class_of
from toolmem.rules.turns import ToolUse
from toolmem.sentences.shown_text import mask_pasted
from toolmem.sentences.split_text import split_message
from toolmem.server.json_text import read_json
from toolmem.store.words import index_words

SIZES = (5_000, 20_000, 80_000)  # characters
MOST = 7  # times the CPU for four times the text; what is quadratic takes 16 times
# Seconds of CPU that say nothing: caches and other work on the machine. What is quadratic takes several seconds for
# 80,000 characters.
NOISE = 0.2


def _call(output: str, **given: str) -> ToolCallResult:
    return ToolCallResult(
        tool_name="sql_query", input=given, output=output, create_time=datetime(2026, 1, 1, tzinfo=UTC)
    )


def _dotenv(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, ".env")
        path.write_text(f"A={text}", encoding="utf-8", errors="replace")
        return read_dotenv(path)


def masked_call(text: str) -> object:
    mask = SecretMask(lambda _: "[masked:000000]")
    return mask.again(mask.text(text))


# A reader of text that somebody else wrote. A new one is entered here: a name, and a function of the text.
READERS: dict[str, Callable[[str], object]] = {
    "sentences of a message": lambda text: list(split_message(text, mask_pasted)),
    "demands of a message": lambda text: find_instructions(text, ran=["send_email"], catalogue=["bash", "web_search"]),
    "class of a failure in a turn": lambda text: class_of(ToolUse("t", output_summary=text)),
    "numbers of a demand": lambda text: (numbers_said(text), speaks_of_time(text)),
    "sameness of rules": identity.same_text,
    "plain line": plain_text.plain_line,
    "plain text": plain_text.plain_text,
    "name of a tool": plain_text.name_shown,
    "text on a terminal": plain_text.escaped,
    "judged output": lambda text: RuleBasedCheck().check(_call(text)),
    "judged shell output": lambda text: RuleBasedCheck().check(
        ToolCallResult(tool_name="bash", input={"command": "find ."}, output=text, create_time=datetime.now(UTC))
    ),
    "judged input": lambda text: RuleBasedCheck().check(_call("x: cannot do it", query=text)),
    "class of an error": error_classes.error_class_of,
    "telling line": error_messages.telling_line,
    "mask of a message": error_messages.mask,
    "SQL": sql.read_statement,
    "programs of a command": signers,
    "shell command": read_command,
    "parameters of a call": lambda text: conditions.observe(_call("", query=text), {}),
    "form of a value": lambda text: (values.text_shape(text), values.number_of(text)),
    "path of a value": lambda text: values.at({"a": 1, text: 2}, text),
    "failed calls": lambda text: analyze("query", [_call(text, query=str(i)) for i in range(3)]),
    "calls with long inputs": lambda text: analyze("query", [_call("ok", query=f"{i} {text}") for i in range(3)]),
    "guidance reply": writer_reply.read_guidance,
    "edits reply": lambda text: writer_reply.parse_edits(writer_reply.read_edits_block(text)),
    "judge's reply": read_verdict,
    "secrets of an address": hidden_values.masked,
    "interpolation": lambda text: fill_in(text, {}),
    "override": read_override,
    "scalar": read_scalar,
    "dotenv": _dotenv,
    "JSON of a request": read_json,
    "JSON of a recording": lines.parse,
    "texts of a recording": lambda text: json_values.clean_text(text, json_values.Repairs()),
    "words of a search": index_words,
    "text of a vector": normalized,
    "secrets of a call": masked_call,
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
    "named secrets": "password=",
    "named secrets in quotes": '\\"password\\": \\"',
    "passwords": 'password: "hunter2" ',
    "addresses with passwords": "://a:b@c ",
    "tokens": "eyJaaaaaaaaaaaaaaaa.",
    "private keys": "-----BEGIN PRIVATE KEY-----",
    "cookies": "cookie: a=b ",
    "commands with passwords": "mysql curl -u ",
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
    "combining marks out of order": "\u0301\u0316",
    "lone surrogates": "\ud800",
    "errors of Python": "ValueError: ",
    "mail addresses": "a.b@",
    "apostrophes": "' ",
    "headers": "From: x\n",
    "sentences": "I don't know. ",
    "words with hyphens": "x-",
    "missing names": "near '",
    "lists of a shell": "a;",
    "spaces after a name": "A=1 ",
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
def test_a_text_of_ten_thousand_characters_is_read_at_once(reader: str) -> None:
    """What is quadratic takes seconds, on however quick a machine. The test below sees it sooner, and takes longer."""
    for name, text in _texts():
        assert takes_less_than(1.0, partial(_read, READERS[reader], text(2 * SIZES[0]))), name


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_reading_four_times_the_text_takes_at_most_seven_times_as_long(reader: str) -> None:
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
        if long < NOISE or long <= MOST * short or long > 25 * NOISE:
            break
    return short, long


def _seconds(read: Callable[[str], object], text: str) -> float:
    return seconds_of(partial(_read, read, text))


def _read(read: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(ToolMemError, ValueError):  # refused
        read(text)
