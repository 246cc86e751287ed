"""A call that the guard denied: it did not run, and what stands as its output is the guard's reason.

Such a call is neither a failure nor a success. Its output is known by its first words, also where the host that asked
the guard put its own around them. Only forms that hosts write are read, and only at the very beginning: an output
that quotes the words further inside is an output like any other.
"""

from __future__ import annotations

import re
from functools import cache

STOPPED = "toolmem: not run"  # every reason of a call that was stopped begins so
_NOTED = ("kept", "proposed", "refused")  # of a command that noted a demand: a hook answered it in its place
_FARTHEST = 1_000  # characters within which the reason begins, whatever stands before it

_HOOK = r"(?:PreToolUse|preToolUse|BeforeTool|pre_tool_use|beforeShellExecution|beforeMCPExecution)"
_NAME = r"[\w.:/-]{1,128}"
# What hosts and frameworks put before a reason, one kind a line.
_AROUND = (
    r"<[a-z][a-z_-]{0,30}>",  # <error>, <tool_use_error>
    r"(?:\w{1,60}\.){0,6}\w{0,60}(?:[Ee]rror|Exception|Denied)(?::|\(['\"])",  # Error:, CallDenied('
    rf"Error (?:executing|calling|invoking|running) (?:tool|function) ['\"`]?{_NAME}['\"`]?:",  # MCP servers
    r"An error occurred while running the tool\. Please try again\.",  # OpenAI's agents
    rf"{_HOOK}(?::{_NAME})? hook (?:error|denied|blocked)(?: {_NAME})?:(?:\s{{0,2}}\[[^\]\n]{{1,300}}\]:)?",
    rf"Hook {_HOOK}(?::{_NAME})? (?:denied|blocked) this tool(?: call)?:",
    (
        rf"(?:Command|Tool(?: call| use| execution)?|{_NAME} operation) (?:was )?(?:blocked|denied|rejected)"
        rf"(?: by (?:an? |the )?(?:{_HOOK} )?hook)?:(?:\n- )?(?:\[[^\]\n]{{1,300}}\]:)?"
    ),  # Codex, Gemini CLI
    # JSON: an object or a list whose text is the reason; short marks of the host may stand before it
    r"[\[{]",
    (
        r'"(?:type|isError|is_error|status|success|ok|code|name|id|tool_use_id|tool_call_id|role)"\s{0,4}:\s{0,4}'
        r'(?:true|false|null|-?\d{1,9}|"[\w.:-]{0,80}")\s{0,4},'
    ),
    r'"(?:error|message|text|content|reason|detail|details|output|result|stderr|errorMessage)"\s{0,4}:',
    r'"',
)


@cache
def _denied() -> re.Pattern[str]:
    stopped = rf"(?:{STOPPED}(?![\w-])|toolmem: (?:{'|'.join(_NOTED)})\. )"
    return re.compile(rf"\s{{0,20}}(?:(?:{'|'.join(_AROUND)})\s{{0,20}}){{0,10}}{stopped}")


def is_denied(output: str) -> bool:
    """Does an output say that its call was stopped before it ran?"""
    if "toolmem: " not in output[: _FARTHEST + len(STOPPED)]:
        return False
    return _denied().match(output, 0, _FARTHEST + len(STOPPED) + 1) is not None
