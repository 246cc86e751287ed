"""What kind of output the tool's name and the input let one expect.

The same words are a failure in one tool's answer and data in another's: "Permission denied" from `write_file` is
one, in a man page it is not. The names of tools and arguments that are looked at here are those that tools of
this kind commonly have; a tool that none of them fits is judged by its output alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from toolmem.readers import words

Kind = Literal["content", "query", "action", "shell", "program", "unknown"]

_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")

_SHELL = words("bash shell terminal cmd powershell console zsh sh ssh cli")
_COMMAND_KEYS = ("command", "cmd", "commands", "shell_command", "script", "bash_command", "command_line")
# what runs code: a language or an interpreter anywhere in the name, or a verb at its beginning
_INTERPRETS = words(
    "python ipython jupyter javascript js node nodejs repl interpreter notebook sandbox csharp php ruby perl lua rust "
    "java matlab pytest"
)
_RUNS = words("run execute exec eval test build compile lint interpret dbt")
_LANGUAGES = words("go r c")  # too short to mean anything in a longer name
# answers that consist of text somebody else wrote
_CONTENT = words(
    "read view cat search grep news wikipedia wiki email emails mail mails inbox translate translation summarize "
    "summary convert format think thought document documents doc docs page article log logs transcript chat ask "
    "complete generate scrape crawl extract recall memory message messages history tickets issues define "
    "definition dictionary lyrics joke jokes quote poem story faq explain explanation llm gpt answer tree directory "
    "fetch webfetch browse browser web snapshot classify sentiment label transcribe ocr rewrite "
    "paraphrase glob ls"
)
# of these, the ones that turn a text into another: two words that sound like a complaint may be the text
_RENDERS = words("translate translation transcribe ocr convert format classify sentiment label rewrite paraphrase")
_CHANGES = words(
    "write create insert update delete remove add set put save send edit replace move copy rename mkdir touch "
    "upload book cancel transfer pay post modify append apply patch install commit push log think sleep wait "
    "click type press close start stop submit register schedule assign drop alter truncate clear reset "
    "exchange return finish str"
)
_ASKS = words(
    "get list find query select show describe lookup look fetch retrieve check count calculate compute search "
    "read view cat grep recall browse scan explore inspect translate summarize convert weather news"
)
_VIEWING = words("view read open cat show print list")
_SQL_TOOLS = words("sql mysql postgres postgresql pg sqlite database db bigquery")
_SQL_KEYS = ("query", "sql", "statement", "q", "sql_query")
_SQL_ASKS = re.compile(r"[(\s]{0,200}(?:select|show|desc|describe|explain|pragma|with|table|values)\b", re.IGNORECASE)
_SQL_CHANGES = re.compile(
    r"\s{0,200}(?:insert|update|delete|create|alter|drop|truncate|replace|grant|revoke|begin|commit|rollback|set|use|merge"
    r"|vacuum|attach|detach)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Expectation:
    kind: Kind
    asks: bool  # it was asked for something, so that an empty answer leaves the question open
    changes: bool  # it was to change something, so that silence is a good answer
    command: str = ""  # the command line of a shell tool
    echoes: bool = False  # that command line prints text which others wrote (files, logs, histories)
    renders: bool = False  # a tool that turns one text into another


_CHINESE = {"翻译": "translate", "搜索": "search", "阅读": "read", "读取": "read", "总结": "summarize", "查询": "query"}


def name_parts(tool_name: str) -> list[str]:
    """`getUserName`, `get_user_name` and `get-user-name` alike -> get, user, name."""
    parts = [part.lower() for part in _NAME_PART.findall(tool_name[:200])]
    return parts + [english for chinese, english in _CHINESE.items() if chinese in tool_name]


def expectation(tool_name: str, given: Any) -> Expectation:
    """What to expect of a call of `tool_name` with the input `given`."""
    parts = name_parts(tool_name)
    named = frozenset(parts)
    arguments: dict[str, Any] = given if isinstance(given, dict) else {}
    command = _command(named, arguments, given)
    if command is not None:
        # a word among the arguments of a larger editor tool ("view", "create") is a sub-command, not a shell's
        if " " not in command.strip() and not named & _SHELL and not named & {"command", "run", "execute", "exec"}:
            if command.strip().lower() in _VIEWING:
                return Expectation("content", asks=True, changes=False)
            return Expectation("unknown", asks=False, changes=True)
        asks, echoes = _shell_asks(command), _shell_echoes(command)
        return Expectation("shell", asks=asks, changes=not asks, command=command, echoes=echoes)
    first = parts[0] if parts else ""
    changes = first in _CHANGES or (bool(named & _CHANGES) and not named & _ASKS)
    asks = not changes and bool(named & _ASKS)
    if named & _CONTENT and not named & (_CHANGES - _CONTENT):
        return Expectation("content", asks=asks, changes=changes, renders=bool(named & _RENDERS))
    statement = next((v for k in _SQL_KEYS if isinstance(v := arguments.get(k), str)), "")
    if _SQL_ASKS.match(statement) or _SQL_CHANGES.match(statement):
        asks = _SQL_ASKS.match(statement) is not None
        return Expectation("query", asks=asks, changes=not asks)
    if named & _SQL_TOOLS:
        return Expectation("query", asks=True, changes=False)
    runs_code = "code" in named and bool(named & _RUNS)
    if named & _INTERPRETS or first in _RUNS or runs_code or (first in _LANGUAGES and len(parts) < 3):
        return Expectation("program", asks=False, changes=False)
    return Expectation("action" if changes else "query" if asks else "unknown", asks=asks, changes=changes)


def _command(named: frozenset[str], arguments: dict[str, Any], given: Any) -> str | None:
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return " ".join(value)
    if not named & _SHELL:
        return None
    if isinstance(given, str):
        return given
    return next((value for value in arguments.values() if isinstance(value, str)), "")


# programs that print what was asked for, and those that print text which others wrote
_ECHOING = words(
    "cat head tail grep egrep fgrep zgrep rg ack ag less more sed awk jq yq echo printf strings man info history "
    "journalctl dmesg diff xxd hexdump od base64 tac nl bat column fold cut sort uniq tr zcat type Get-Content"
)
_PRINTING = _ECHOING | words(
    "ls wc find locate du df ps top stat file which whereis date uname whoami id pwd env printenv cmp tree curl wget "
    "ping dig nslookup netstat ss lsof free uptime"
)
_CLIENTS = words("git docker kubectl")  # what they print depends on their first argument
_ECHOING_PARTS = words("log diff show grep blame logs describe cat-file")
_PRINTING_PARTS = _ECHOING_PARTS | words("ps get images branch ls-files status")
_REDIRECTED = re.compile(r"(?<![0-9&])>{1,2}\s*[^\s&]")
_STAGE = re.compile(r"\|\||&&|[|;\n]")
_FIND_ACTS = re.compile(r"-(?:exec|execdir|delete|ok)\b")


def _shell_asks(command: str) -> bool:
    """Its last part prints what was asked for, so that empty output is an empty answer."""
    stages = [stage for stage in _STAGE.split(command[-2000:]) if stage.strip()]
    if not stages or _REDIRECTED.search(stages[-1]):
        return False
    parts = stages[-1].split()
    program = parts[0].rsplit("/", 1)[-1]
    if program == "find" and _FIND_ACTS.search(stages[-1]):
        return False
    if program == "sed" and any(part.startswith(("-i", "--in-place")) for part in parts):
        return False
    if program in _CLIENTS:
        return len(parts) > 1 and parts[1] in _PRINTING_PARTS
    return program in _PRINTING


def _shell_echoes(command: str) -> bool:
    """One of its parts prints text which others wrote."""
    for stage in _STAGE.split(command[:2000]):
        parts = stage.split()
        program = parts[0].rsplit("/", 1)[-1] if parts else ""
        if program in _ECHOING or (program in _CLIENTS and len(parts) > 1 and parts[1] in _ECHOING_PARTS):
            return True
    return False
