"""Which outputs say that a call was stopped before it ran, whatever its host wrote around."""

from __future__ import annotations

import json

import pytest

from toolmem.text.stopped_calls import was_stopped

REASON = "toolmem: not run. The user said on 2026-01-01: never email Sarah. Leave it out, or ask."
BLOCK = {"type": "text", "text": REASON}

STOPPED = {
    "bare": REASON,
    "to be asked": "toolmem: not run; ask the user first. The user said: ask me before.",
    "after blanks": f"\n  {REASON}",
    "a recorder's exception": f"CallDenied: {REASON}",
    "an exception with its module": f"toolmem.errors.CallDenied: {REASON}",
    "error": f"Error: {REASON}",
    "tag": f"<error>{REASON}</error>",
    "tool_use_error": f"<tool_use_error>Error: {REASON}</tool_use_error>",
    "repr of an exception": f"Error: CallDenied('{REASON}')\n Please fix your mistakes.",
    "OpenAI agents": f"An error occurred while running the tool. Please try again. Error: {REASON}",
    "MCP server": f"Error executing tool send_email: {REASON}",
    "another MCP server": f"Error calling tool 'send_email': {REASON}",
    "Codex": f"Command blocked by PreToolUse hook: {REASON}. Command: git push",
    "Codex tool": f"Tool call blocked by PreToolUse hook: {REASON}",
    "Claude Code": f"PreToolUse:Bash hook error: [/usr/bin/env toolmem hook run]: {REASON}",
    "Claude Code, an MCP tool": f"Error: PreToolUse:mcp__mail__send hook error: {REASON}",
    "Claude Code, by name": f"Hook PreToolUse:Bash denied this tool: {REASON}",
    "Claude Code, before": f"Bash operation blocked by hook:\n- [/usr/bin/toolmem]: {REASON}",
    "Gemini CLI": f"Tool execution blocked: {REASON}",
    "content blocks": json.dumps([BLOCK]),
    "content blocks, indented": json.dumps([BLOCK], indent=2),
    "MCP result": json.dumps({"content": [BLOCK], "isError": True}),
    "MCP result, flag first": json.dumps({"isError": True, "content": [BLOCK]}),
    "error object": json.dumps({"error": REASON}),
    "JSON-RPC error": json.dumps({"error": {"code": -32000, "message": REASON}}),
    "status first": json.dumps({"status": "error", "message": f"Error: {REASON}"}),
    "JSON string": json.dumps(REASON),
    "cut short": json.dumps([BLOCK])[:80],
}
RAN = {
    "nothing": "",
    "an answer": "ok",
    "quoted in a sentence": f"The page says: {REASON}",
    "quoted after an error of its own": f"I found this. Error: {REASON}",
    "found by grep": f"docs/limits.md:12: {REASON}",
    "found in a hook's source": f"hooks/guard.py:3: {REASON}",
    "on the second line": f"# Title\n{REASON}",
    "in a field of an answer": json.dumps({"title": REASON}),
    "in a list of results": json.dumps({"results": [{"title": "a", "text": REASON}]}),
    "in a second block": json.dumps([{"type": "text", "text": "Here is the page"}, BLOCK]),
    "at the end of a traceback": f"Traceback (most recent call last):\n  File x\nError: {REASON}",
    "far inside": "x" * 2_000 + REASON,
    "a longer word": "toolmem: not running",
    "other case": REASON.title(),
    "numbered search results": f"[1] {REASON}",
}


@pytest.mark.parametrize("output", STOPPED.values(), ids=list(STOPPED))
def test_a_reason_is_known_whatever_its_host_wrote_around_it(output):
    assert was_stopped(output)


@pytest.mark.parametrize("output", RAN.values(), ids=list(RAN))
def test_an_output_that_only_quotes_a_reason_is_an_output_like_any_other(output):
    assert not was_stopped(output)
