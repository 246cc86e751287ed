"""Read the output of a tool from each agent's payload, and whether the call failed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from toolmem.hooks.agents import Agent
from toolmem.text.patterns import late_pattern

_COPILOT_END = late_pattern(
    r"\n?<(?:shellId: [^<>\n]{1,40} )?(?:completed|exited) with exit code (-?\d{1,9})>\s{0,4}\Z"
)
_GEMINI = late_pattern(r"\A<untrusted_context>\n(?:Output: )?(.*)\n</untrusted_context>", re.DOTALL)
_GEMINI_END = late_pattern(
    r"(?:\nExit Code: (-?\d{1,9}))?(?:\nSignal: [^\n]{1,40})?"
    r"(?:\nBackground PIDs: [^\n]{1,200})?(?:\nProcess Group PGID: \d{1,9})?\Z"
)
_ERROR_FLAGS = ("is_error", "isError")
_RECORDING_END = 1_000_000  # bytes at the end of an agent's recording that are read


def text_of(agent: Agent, value: Any) -> str:
    """The text of a tool's response, in any of the forms that agents use."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return "\n".join(_part(each) for each in value)
    if isinstance(value, Mapping):
        if agent.output_key:
            return text_in(value, agent.output_key)
        if "llmContent" in value:
            return text_of(agent, value["llmContent"])
        if isinstance(value.get("stdout"), str):
            streams = (text_in(value, name) for name in ("stdout", "stderr"))
            return "\n".join(filter(None, streams))
        if "structuredPatch" in value and isinstance(value.get("filePath"), str):
            # The other fields are the whole files.
            verb = "Created" if value.get("type") == "create" else "Updated"
            return f"{verb}: {value['filePath']}"
        inner = value["file"] if isinstance(value.get("file"), Mapping) else value
        for name in ("content", "output"):
            if isinstance(inner.get(name), str | list):
                return text_of(agent, inner[name])
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _part(part: Mapping[str, Any]) -> str:
    if "success" in part:  # Cline: one part for each thing that the tool did
        return text_in(part, "result") or text_in(part, "error")
    return text_in(part, "text") or f"[{text_in(part, 'type') or 'part'}]"


def read_output(
    agent: Agent, event: str, given: Mapping[str, Any], call_id: str
) -> tuple[str, bool | None]:
    """The output without the agent's wrapping, and whether the call failed (None: unknown).

    `event`: Claude Code's name of it. `given`: the payload with Claude Code's keys.
    """
    response = given.get("tool_response")
    output = text_in(given, "error") or text_of(agent, response)
    if event == "PostToolUseFailure":
        return output, True
    fields: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
    flagged = any(each.get(name) is True for each in (fields, given) for name in _ERROR_FLAGS)
    if agent.outcome == "result_type":
        return _copilot_output(output, fields)
    if agent.outcome == "wrapping":
        return _gemini_output(output, fields)
    if agent.outcome == "recording":
        return output, flagged or _failed_in_recording(text_in(given, "transcript_path"), call_id)
    if isinstance(response, list):
        flagged |= any(isinstance(each, dict) and each.get("success") is False for each in response)
    code = given.get("exit", fields.get("exitCode"))
    return output, flagged or (isinstance(code, int) and code != 0)


def _copilot_output(output: str, response: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Copilot reports a failed shell command as a success; the last line has the exit code."""
    end = _COPILOT_END.search(output, max(0, len(output) - 200))
    output, code = (output[: end.start()], end[1]) if end else (output, "0")
    kind = text_in(response, "result_type")
    return output, (kind not in ("", "success") or code != "0") if response else None


def _gemini_output(output: str, response: Mapping[str, Any]) -> tuple[str, bool | None]:
    if not response:
        return output, None
    flagged = bool(response.get("error"))
    inner = _GEMINI.match(output)
    if inner is None:
        return output, flagged
    end = _GEMINI_END.search(inner[1], max(0, len(inner[1]) - 400))
    code = end[1] if end else None
    return inner[1][: end.start() if end else None], flagged or code not in (None, "0")


def _failed_in_recording(path: str, call_id: str) -> bool | None:
    """Whether Codex's recording says that a call failed; None if it does not say."""
    for line in reversed(last_lines(path) if call_id else []):
        if call_id not in line:
            continue
        try:
            event = json.loads(line)["payload"]
            item = event.get("item") or event
            ids = {event.get("call_id"), item.get("id")}
            code = item.get("exit_code")
            success = item.get("success")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if call_id in ids and str(event.get("type")).endswith(("_end", "item_completed")):
            if code is not None:
                return bool(code != 0)
            if success is not None or item.get("status"):
                return success is False or item.get("status") == "failed"
    return None


def last_lines(path: str) -> list[str]:
    """Read the last lines of an agent's recording; [] if it cannot be read."""
    with suppress(OSError, ValueError), open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - _RECORDING_END))
        return file.read().decode("utf-8", "replace").splitlines()
    return []


def read_json(value: Any) -> Any:
    """The value of a JSON text; anything else unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def text_in(given: Mapping[str, Any], name: str) -> str:
    """A field that is text; "" if it is missing or something else."""
    value = given.get(name)
    return value if isinstance(value, str) else ""
