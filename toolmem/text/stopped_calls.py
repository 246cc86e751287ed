"""Recognize the outputs of calls that the guard stopped before they ran.

Such a call neither failed nor worked. Its output begins with the guard's reason, which the host may
have wrapped in words of its own. A reason that is quoted further inside does not count.
"""

from __future__ import annotations

from toolmem.text.patterns import late_pattern

STOPPED = "toolmem: not run"  # begins the reason of each stopped call
_MAX_WRAPPING = 1_000  # characters before the reason

_HOOK = r"(?:PreToolUse|preToolUse|BeforeTool|pre_tool_use|beforeShellExecution|beforeMCPExecution)"
_NAME = r"[\w.:/-]{1,128}"
_WRAPPINGS = (  # texts that hosts and frameworks put before a reason
    r"<[a-z][a-z_-]{0,30}>",  # <error>, <tool_use_error>
    # Error:, CallDenied('
    r"(?:\w{1,60}\.){0,6}\w{0,60}(?:[Ee]rror|Exception|Denied)(?::|\(['\"])",
    # MCP servers
    rf"Error (?:executing|calling|invoking|running) (?:tool|function) ['\"`]?{_NAME}['\"`]?:",
    r"An error occurred while running the tool\. Please try again\.",  # OpenAI Agents SDK
    # Claude Code
    rf"{_HOOK}(?::{_NAME})? hook (?:error|denied|blocked)(?: {_NAME})?:"
    r"(?:\s{0,2}\[[^\]\n]{1,300}\]:)?",
    rf"Hook {_HOOK}(?::{_NAME})? (?:denied|blocked) this tool(?: call)?:",
    # Codex, Gemini CLI
    rf"(?:Command|Tool(?: call| use| execution)?|{_NAME} operation) "
    rf"(?:was )?(?:blocked|denied|rejected)(?: by (?:an? |the )?(?:{_HOOK} )?hook)?:"
    r"(?:\n- )?(?:\[[^\]\n]{1,300}\]:)?",
    # JSON whose text is the reason; short fields may stand before it
    r"[\[{]",
    r'"(?:type|isError|is_error|status|success|ok|code|name|id|tool_use_id|tool_call_id|role)"'
    r'\s{0,4}:\s{0,4}(?:true|false|null|-?\d{1,9}|"[\w.:-]{0,80}")\s{0,4},',
    r'"(?:error|message|text|content|reason|detail|details|output|result|stderr|errorMessage)"'
    r"\s{0,4}:",
    r'"',
)
_WRAPPED = late_pattern(
    rf"\s{{0,20}}(?:(?:{'|'.join(_WRAPPINGS)})\s{{0,20}}){{0,10}}"
    # a reason, or what a hook answered to a command that notes a demand
    rf"(?:{STOPPED}(?![\w-])|toolmem: (?:kept|proposed|refused)\. )"
)


def was_stopped(output: str) -> bool:
    """Whether an output says that its call was stopped before it ran."""
    head = output[: _MAX_WRAPPING + len(STOPPED) + 1]
    return "toolmem: " in head and _WRAPPED.match(head) is not None
