"""The formats of other programs. The first one whose marks fit a unit is taken.

The comment of a format names the program that writes it, the version it was last verified with, and
what is unusual. The payloads in `tests/formats/payloads` were written by these programs.
"""

from __future__ import annotations

from toolmem.formats.shapes import ANY, USUAL_ARGUMENTS, Format, Shape
from toolmem.formats.spans import flat_span, with_attachments

_NOT_TYPED = ("<", "Caveat: ", "[Request interrupted", "This session is being continued")

# Blocks of Anthropic's Messages API. `is_error` is often left out where a call failed, too.
_BLOCK_CALL = Shape(
    where={"type": ("tool_use", "server_tool_use", "mcp_tool_use")},
    id="id",
    name="name",
    arguments="input",
    time="^timestamp",
)
_BLOCK_ANSWER = Shape(
    where={"tool_use_id": ANY, "content": ANY},
    id="tool_use_id",
    output="content",
    error="is_error",
    end="^timestamp",
)

# Claude Code 2.1.197, ~/.claude/projects/<folder>/<session>.jsonl; sub-agents in
# <session>/subagents/. A block of a message has a line of its own. Answers stand in lines of the
# type user, beside much that no person typed. The session goes on in other files: ids decide.
CLAUDE_CODE = Format(
    "claude_code",
    marks=({"sessionId": ANY, "uuid": ANY},),
    inside=("message", "content"),
    shapes=(
        Shape(where={"sessionId": ANY}, conversation=("sessionId", "agentId")),
        _BLOCK_CALL,
        _BLOCK_ANSWER,
        Shape(where={"role": "user", "^type": "user", "^isMeta": None}, request="content"),
    ),
    silent_success=True,
    not_typed=_NOT_TYPED,
    refused=(
        "The user doesn't want to",
        "[Request interrupted",
        "Permission to use",
        "Claude requested permissions",
    ),
)

# Codex 0.171.0, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl. A command's exit code stands in an
# event before the answer (`item_completed`; `exec_command_end` until 2026), which says it in words.
# A tool of an MCP server has the server's name beside its own.
CODEX = Format(
    "codex",
    marks=({"payload/type": ANY, "timestamp": ANY}, {"type": "session_meta", "payload": ANY}),
    inside=("payload", "item"),
    shapes=(
        Shape(where={"type": "session_meta"}, conversation=("payload/session_id|payload/id",)),
        Shape(
            where={"type": ("function_call", "custom_tool_call"), "^type": "response_item"},
            id="call_id",
            name="name",
            namespace="namespace",
            arguments="arguments|input",
            time="^timestamp",
        ),
        Shape(where={"type": "CommandExecution"}, id="id", status="exit_code"),
        Shape(
            where={"type": "McpToolCall"}, id="id", error="result/isError|error", status="status"
        ),
        Shape(where={"type": "exec_command_end"}, id="call_id", status="exit_code"),
        Shape(
            where={"type": ("function_call_output", "custom_tool_call_output")},
            id="call_id",
            output="output",
            end="^timestamp",
        ),
        Shape(where={"type": "UserMessage"}, request="content"),
        Shape(where={"type": "user_message"}, request="message"),
    ),
    not_typed=_NOT_TYPED,
    noise=r"\A(?:Chunk ID: .*\n)?Wall time: .*\n((?:Process exited.*\n)?)"
    r"(?:Original token count: .*\n)?Output:\n?",
    hook_names={"exec_command": ("Bash", {"cmd": "command"})},
)

# Gemini CLI 0.61.0, ~/.gemini/tmp/<project>/chats/session-*.jsonl. A message is written again when
# its calls have ended. `success` means that the tool was run: a command that exits with 1 has it.
# A rewound message ($rewindTo) did run its calls.
GEMINI = Format(
    "gemini_cli",
    marks=({"sessionId": ANY, "projectHash": ANY}, {"$set": ANY}),
    inside=("$set", "messages", "toolCalls"),
    shapes=(
        Shape(where={"projectHash": ANY}, conversation=("sessionId",)),
        Shape(
            where={USUAL_ARGUMENTS: ANY, "name": ANY},
            id="id",
            name="name",
            arguments="args",
            output="result/0/functionResponse/response/output"
            "|result/0/functionResponse/response/error|result/0/functionResponse/response",
            status="status",
            time="^timestamp",
            end="timestamp",
        ),
        Shape(where={"type": "user", "content": ANY}, request="content"),
    ),
    trusts_success=False,
    not_typed=_NOT_TYPED,
    noise=r"\A<untrusted_context>\n|\nProcess Group PGID: \d+|\n</untrusted_context>\Z",
)

# OpenCode 1.18.33, $XDG_DATA_HOME/opencode/opencode.db (SQLite, table `part`), and what
# `opencode export` prints. A command that failed is `completed`; its exit code tells.
OPENCODE = Format(
    "opencode",
    marks=({"session_id": ANY, "data/type": ANY}, {"info/id": ANY, "messages/0/parts": ANY}),
    inside=("data", "messages", "parts"),
    shapes=(
        Shape(where={"session_id": ANY}, conversation=("session_id",)),
        Shape(where={"info/id": ANY}, conversation=("info/sessionID|info/id",)),
        Shape(
            where={"type": "tool", "callID": ANY},
            id="callID",
            name="tool",
            arguments="state/input",
            output="state/output",
            error="state/error",
            status="state/metadata/exit|state/status",
            time="state/time/start",
            end="state/time/end",
        ),
        Shape(where={"^role": "user", "type": "text"}, request="text"),
        Shape(where={"info/role": "user", "parts/0/text": ANY}, request="parts/0/text"),
    ),
    refused=("The user rejected permission", "The user has specified a rule"),
)

# OpenTelemetry: OTLP in JSON and spans of the SDK's `to_json` (1.45.2), with the attributes of
# GenAI, of OpenInference (0.1.42, Phoenix) and of Langfuse's SDK (5.0.4). Arguments and results are
# opt-in: many spans have none. Messages of a model's span repeat the whole conversation.
OTEL = Format(
    "otel",
    marks=(
        {"scopeSpans|resourceSpans": ANY},
        {"attributes": ANY, "context/trace_id": ANY},
        {"traceId": ANY, "startTimeUnixNano": ANY},
    ),
    prepare=flat_span,
    inside=("messages", "parts"),
    shapes=(
        Shape(where={"trace": ANY}, conversation=("conversation",)),
        Shape(
            where={"is_tool": True},
            id="id",
            name="tool",
            arguments="arguments",
            output="result",
            status="status",
            time="start",
            end="end",
        ),
        Shape(where={"type": "tool_call"}, id="id", name="name", arguments="arguments"),
        Shape(where={"type": "tool_call_response"}, id="id", output="response|result"),
        Shape(where={"role": "user", "parts/0/content": ANY}, request="parts/0/content"),
    ),
    repeats_history=True,
)

# Langfuse 5.0.4: observations of its API and of its exports. Only those of the type TOOL are
# calls; the level ERROR says that one failed, other levels say nothing.
LANGFUSE = Format(
    "langfuse",
    marks=(
        {"type": ANY, "traceId|trace_id": ANY, "startTime|start_time": ANY, "level": ANY},
        {"observations/0/type": ANY},
    ),
    inside=("observations",),
    shapes=(
        Shape(
            where={"type": "TOOL"},
            id="id",
            name="name",
            arguments="input",
            output="output|statusMessage|status_message",
            status="level",
            time="startTime|start_time",
            end="endTime|end_time",
            conversation=("sessionId|session_id|^sessionId|traceId|trace_id",),
        ),
    ),
)

# LangSmith 0.15.1: runs of its API and exports, and the batches that its client sends. Chains hold
# the same messages again: only runs of the type tool are read. `session_id` names the project.
LANGSMITH = Format(
    "langsmith",
    marks=({"run_type": ANY, "id": ANY}, {"post": ANY}, {"patch": ANY}),
    inside=("post", "patch", "child_runs"),
    shapes=(
        Shape(
            where={"run_type": "tool"},
            id="id",
            name="name",
            arguments="inputs",
            output="error|outputs/output/content|outputs/output|outputs",
            error="error",
            status="outputs/output/status|status",
            time="start_time",
            end="end_time",
            conversation=(
                "extra/metadata/thread_id|extra/metadata/session_id"
                "|extra/metadata/conversation_id|trace_id",
            ),
        ),
    ),
    silent_success=True,
)

# inspect_ai 0.3.285: samples of a log, as .json or .eval (a zip). Long texts stand in the sample's
# `attachments`. A call without `error` worked.
INSPECT = Format(
    "inspect_ai",
    marks=({"events/0/event": ANY, "epoch": ANY},),
    prepare=with_attachments,
    inside=("events",),
    shapes=(
        Shape(where={"epoch": ANY, "events": ANY}, conversation=("uuid|id",), request="input"),
        Shape(
            where={"event": "tool", "completed": ANY},
            id="id",
            name="function",
            arguments="arguments",
            output="error/message|result",
            error="error",
            time="timestamp",
            end="completed",
        ),
    ),
    silent_success=True,
)

# Items of OpenAI's Responses API (openai 3.57.0): responses, requests, and lists of items.
RESPONSES = Format(
    "openai_responses",
    marks=(
        {"*/type": ("function_call", "function_call_output", "custom_tool_call")},
        {"input/*/type": ("function_call", "function_call_output", "message")},
        {"output/*/type": ("function_call", "message", "reasoning")},
        {"response/output/0/type": ANY},
        {"type": ("function_call", "function_call_output"), "call_id": ANY},
    ),
    inside=("input", "output", "request", "response"),
    shapes=(
        Shape(where={"^conversation": ANY}, conversation=("^conversation/id|^conversation",)),
        Shape(
            where={"type": ("function_call", "custom_tool_call")},
            id="call_id",
            name="name",
            arguments="arguments|input",
        ),
        Shape(
            where={"type": ("function_call_output", "custom_tool_call_output")},
            id="call_id",
            output="output",
        ),
        Shape(
            where={"type": "mcp_call"},
            id="id",
            name="name",
            arguments="arguments",
            output="error|output",
            error="error",
        ),
        Shape(where={"role": "user"}, request="content"),
    ),
    history="input",
    repeats_history=True,
)

# Messages of Anthropic's API (anthropic 2.14.0): a request, a response, or a list of messages.
ANTHROPIC = Format(
    "anthropic",
    marks=(
        {"messages/*/content/*/type": ("tool_use", "tool_result")},
        {"*/content/*/type": ("tool_use", "tool_result")},
        {"content/*/type": ("tool_use", "tool_result")},
    ),
    inside=("messages", "content"),
    shapes=(_BLOCK_CALL, _BLOCK_ANSWER, Shape(where={"role": "user"}, request="content")),
    history="messages",
)

# Messages of langchain-core 1.8.3: `messages_to_dict`, `dumps` and `model_dump`.
LANGCHAIN = Format(
    "langchain",
    marks=(
        {"0/type": ("human", "ai", "system"), "0/data": ANY},
        {"0/lc": ANY, "0/kwargs/content": ANY},
        {"*/type": ("ai", "tool"), "*/content": ANY},
        {"messages/*/type": ("ai", "tool")},
        {"messages/0/lc": ANY},
        {"messages/0/data/content": ANY},
    ),
    inside=("messages", "data", "kwargs", "tool_calls", "invalid_tool_calls"),
    shapes=(
        Shape(where={USUAL_ARGUMENTS: ANY, "name": ANY}, id="id", name="name", arguments="args"),
        Shape(where={"tool_call_id": ANY}, id="tool_call_id", output="content", status="status"),
        Shape(where={"type": "human", "content": ANY}, request="content"),
    ),
    history="messages",
)

# Results of tau2-bench: `simulations`, each a conversation with its tool calls. By its
# documentation: its program was not run.
TAU2 = Format(
    "tau2",
    marks=({"messages/*/tool_calls/*/requestor": ANY},),
    inside=("messages", "tool_calls"),
    shapes=(
        Shape(where={USUAL_ARGUMENTS: ANY}, id="id", name="name", arguments="arguments"),
        Shape(where={"role": "tool"}, id="id", output="content", error="error", end="timestamp"),
        Shape(where={"role": "user", "content": ANY}, request="content"),
    ),
    history="messages",
)

# Rows of a table: CSV and Parquet, by the names that columns usually have.
TABLE = Format(
    "table",
    shapes=(
        Shape(
            id="id|call_id|tool_call_id|span_id",
            name="tool_name|tool|function_name|function|name",
            arguments=USUAL_ARGUMENTS,
            output="output|result|tool_output|response|outputs|content",
            error="error|is_error|failed",
            status="exit_code|status",
            success="success|succeeded|is_success",
            time="create_time|start_time|started_at|timestamp|time|created_at",
            end="end_time|ended_at|completed_at",
            time_cost="time_cost",
            token_cost="token_cost",
            request="context|user_message|prompt|query",
            conversation=("conversation_id|session_id|thread_id|trace_id|run_id",),
        ),
    ),
)

FORMATS = (
    CLAUDE_CODE, CODEX, GEMINI, OPENCODE, OTEL, LANGFUSE, LANGSMITH, INSPECT, TAU2, ANTHROPIC,
    RESPONSES, LANGCHAIN,
)  # fmt: skip
BY_NAME = {each.name: each for each in (*FORMATS, TABLE)}
