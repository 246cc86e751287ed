"""Tell from a tool's name and the input what kind of output to expect of a call.

The same words are a failure in one tool's output and data in another's: "Permission denied" is a
failure of `write_file`, and data in a man page. The tables hold words that are common in the names
of tools; a tool whose name has none of them is judged by its output alone.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from toolmem.text import sql
from toolmem.text.forms import (
    CHANGING_VERBS,
    COMMAND_PARAMETERS,
    INTERPRETER_WORDS,
    MAX_NAME,
    READING_VERBS,
    SHELL_WORDS,
    snake_case,
    word_set,
)

Kind = Literal["content", "query", "action", "shell", "program", "unknown"]


class Expectation(Struct, frozen=True):
    """What a call is for, and so which outputs are normal: an empty one, a page, an error log."""

    kind: Kind  # content: text that somebody else wrote; program: what running code prints
    asks: bool = False  # the call asks for something, so an empty answer is no answer
    changes: bool = False  # the call is to change something, so an empty answer is a good one
    command: str = ""  # the command line of a shell tool
    echoes: bool = False  # the command line prints files, logs or histories
    transforms: bool = False  # the tool turns one text into another
    asks_for_failures: bool = False  # the tool lists failures of other things, such as logs


_NAME_PART = re.compile(r"[a-z]+|\d+|[^\W\d_a-z]+")  # of a name in snake_case
_CHINESE = {
    "翻译": "translate",
    "搜索": "search",
    "阅读": "read",
    "读取": "read",
    "总结": "summarize",
    "查询": "query",
}
_SHELL = SHELL_WORDS | word_set("cmd console sh ssh cli")
_RUNS_A_COMMAND = _SHELL | word_set("command run execute exec")
_COMMAND_KEYS = COMMAND_PARAMETERS | {"script"}
_INTERPRETS = INTERPRETER_WORDS | word_set("javascript js sandbox csharp rust java matlab pytest")
_LANGUAGES = word_set("go r c")  # these words mean something else in longer names
_RUNS = word_set("run execute exec eval test build compile lint interpret dbt")
_TRANSFORMS = word_set(
    "translate translation transcribe ocr convert format classify sentiment label rewrite "
    "paraphrase"
)
_CONTENT = _TRANSFORMS | word_set(
    "read view cat search grep news wikipedia wiki email emails mail mails inbox summarize summary "
    "think thought document documents doc docs page article log logs transcript chat ask complete "
    "generate scrape crawl extract recall memory message messages history tickets issues define "
    "definition dictionary lyrics joke jokes quote poem story faq explain explanation llm gpt "
    "answer tree directory fetch webfetch browse browser web snapshot glob ls"
)
_CHANGES = CHANGING_VERBS | word_set(
    "send book cancel transfer pay apply install commit push log think sleep wait click type press "
    "close start stop submit register schedule assign drop alter clear reset exchange return "
    "finish str"
)
_ASKS = READING_VERBS | word_set("select cat grep recall scan explore convert weather news")
_FAILURES = word_set(
    "error errors failed failing failure failures exceptions incidents alerts log logs history"
)
_VIEWS = word_set("view read open cat show print list")
_SQL = word_set("sql mysql postgres postgresql pg sqlite database db bigquery")
_SQL_KEYS = ("query", "sql", "statement", "q", "sql_query")
_SQL_VERB = re.compile(r"[(\s]{0,200}(\w*)")
_SQL_ASKS = sql.ANSWERING | {"PRAGMA", "TABLE"}
_SQL_CHANGES = sql.CHANGING | word_set("ROLLBACK REVOKE VACUUM ATTACH DETACH")


def expectation(tool_name: str, given: Any) -> Expectation:
    """Tell what to expect of a call of `tool_name` with the input `given`."""
    parts = _NAME_PART.findall(snake_case(tool_name[:MAX_NAME]))
    parts += [english for chinese, english in _CHINESE.items() if chinese in tool_name]
    named = frozenset(parts)
    command = _command(named, given)
    if command is not None:
        return _of_command(command, named)
    first = parts[0] if parts else ""
    changes = first in _CHANGES or (bool(named & _CHANGES) and not named & _ASKS)
    asks = not changes and bool(named & _ASKS)
    failures = bool(named & _FAILURES)
    if named & _CONTENT and not named & (_CHANGES - _CONTENT):
        turns = bool(named & _TRANSFORMS)
        return Expectation("content", asks, changes, transforms=turns, asks_for_failures=failures)
    values = (given.get(key) for key in _SQL_KEYS) if isinstance(given, dict) else ()
    statement = next((value for value in values if isinstance(value, str)), "")
    verb = _SQL_VERB.findall(statement[:300])[0].upper()
    if verb in _SQL_CHANGES:
        return Expectation("query", changes=True)
    if verb in _SQL_ASKS or named & _SQL:
        return Expectation("query", asks=True)
    runs_code = first in _RUNS or ("code" in named and bool(named & _RUNS))
    if named & _INTERPRETS or runs_code or (first in _LANGUAGES and len(parts) < 3):
        return Expectation("program")
    kind: Kind = "action" if changes else "unknown"
    if asks:
        kind = "query"
    return Expectation(kind, asks, changes, asks_for_failures=failures)


def _command(named: frozenset[str], given: Any) -> str | None:
    """Return the command line in the input: an argument such as `command`, or the text given to a
    tool whose name says shell ("" for none). None for other calls. `named`: words of the name.
    """
    arguments = given if isinstance(given, dict) else {}
    for key, value in arguments.items():
        if key not in _COMMAND_KEYS:
            continue
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return " ".join(value)
    if not named & _SHELL:
        return None
    if isinstance(given, str):
        return given
    return next((value for value in arguments.values() if isinstance(value, str)), "")


def _of_command(command: str, named: frozenset[str]) -> Expectation:
    word = command.strip().lower()
    if " " not in word and not named & _RUNS_A_COMMAND:  # the command of an editor, such as `view`
        if word in _VIEWS:
            return Expectation("content", asks=True)
        return Expectation("unknown", changes=True)
    asks = _command_asks(command)
    echoes = any(
        argument in _CLIENTS_ECHO if program in _CLIENTS else program in _ECHO
        for program, argument in map(_program, _STAGE.split(command[:2_000]))
    )
    return Expectation("shell", asks, not asks, command=command, echoes=echoes)


_ECHO = word_set(
    "cat head tail grep egrep fgrep zgrep rg ack ag less more sed awk jq yq echo printf strings "
    "man info history journalctl dmesg diff xxd hexdump od base64 tac nl bat column fold cut sort "
    "uniq tr zcat type Get-Content"
)
_PRINT = _ECHO | word_set(
    "ls wc find locate du df ps top stat file which whereis date uname whoami id pwd env printenv "
    "cmp tree curl wget ping dig nslookup netstat ss lsof free uptime"
)
_CLIENTS = word_set("git docker kubectl")  # programs whose output depends on the first argument
_CLIENTS_ECHO = word_set("log diff show grep blame logs describe cat-file")
_CLIENTS_PRINT = _CLIENTS_ECHO | word_set("ps get images branch ls-files status")
_REDIRECTED = re.compile(r"(?<![0-9&])>{1,2}\s*[^\s&]")
_STAGE = re.compile(r"\|\||&&|[|;\n]")
_ACTS = {
    "find": re.compile(r"-(?:exec|execdir|delete|ok)\b"),
    "sed": re.compile(r"\s(?:-i|--in-place)"),
}


def _command_asks(command: str) -> bool:
    """Whether the last part of a command line prints something that was asked for."""
    stages = [stage for stage in _STAGE.split(command[-2_000:]) if stage.strip()]
    if not stages or _REDIRECTED.search(stages[-1]):
        return False
    program, argument = _program(stages[-1])
    if program in _ACTS and _ACTS[program].search(stages[-1]):
        return False
    return argument in _CLIENTS_PRINT if program in _CLIENTS else program in _PRINT


def _program(stage: str) -> tuple[str, str]:
    """Return (program, first argument) of a part of a command line; a missing word is ""."""
    path, argument, *_ = [*stage.split(maxsplit=2), "", ""]
    return path.rsplit("/", 1)[-1], argument
