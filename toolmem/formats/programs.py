"""The formats of other programs. A unit is read in the first format with a mark that fits.

The comment above a format becomes its page of the documentation (`docs/generate.py`), so each has
the same parts: Written by, Where, A line, Lost, Verified, and Read for what the `Format` does not
say. The files in `tests/formats/payloads` are real, or filled by hand from a package's types.
"""

from __future__ import annotations

from toolmem.formats import tool_names
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

_TYPED_BY_A_PERSON = {"^isMeta": None, "^isSidechain": None}

# Written by: Claude Code.
# Where: `~/.claude/projects/<folder>/<session>.jsonl`; sub-agents in `<session>/subagents/`.
# A line: one block of a message. Results are in lines of the type `user`, beside much that no
# person typed. A session that continues in another file repeats its earlier calls; ids identify
# them. As in hooks, a sub-agent belongs to the session that started it; a model wrote its prompts.
# Lost: long results: the program keeps a preview. Verified: 2.1.332, by its program.
CLAUDE_CODE = Format(
    "claude_code",
    marks=({"sessionId": ANY, "uuid": ANY},),
    inside=("message", "content"),
    shapes=(
        Shape(where={"sessionId": ANY}, conversation=("sessionId",)),
        _BLOCK_CALL,
        _BLOCK_ANSWER,
        Shape(where={"role": "user", "^type": "user", **_TYPED_BY_A_PERSON}, request="content"),
    ),
    names=tool_names.CLAUDE_CODE,
    silent_success=True,
    not_typed=_NOT_TYPED,
    refused=(
        "The user doesn't want to",
        "[Request interrupted",
        "Permission to use",
        "Claude requested permissions",
    ),
)

# Written by: Codex. Where: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.
# A line: an item of the conversation, or an event of the program.
# Read: a command's exit code, from an event before its result (`item_completed`; until 2026
# `exec_command_end`). The server of an MCP tool is in a field beside the tool's name. Hooks call
# every shell tool Bash and get only its command; of `apply_patch` they get the patch. `write_stdin`
# has no hook. A fork begins with its own `session_meta`, its parent's, and the parent's calls.
# Lost: whether a call worked, where no event says so (`update_plan`).
# Verified: 0.171.0, by its program.
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
        Shape(
            where={"type": "local_shell_call", "action": ANY},
            id="call_id",
            name="=local_shell",
            arguments="action",
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
    noise=r"\A(?:Chunk ID: .*\n)?Wall time: .*\n"
    r"(?:Process exited with code 0\n|(Process exited.*\n))?"
    r"(?:Original token count: .*\n)?Output:\n?",
    names=tool_names.CODEX,
    one_conversation=True,
)

# Written by: Gemini CLI. Where: `~/.gemini/tmp/<project>/chats/session-*.jsonl`.
# A line: a message with its calls, written again when they have ended. Calls that were rewound
# later (`$rewindTo`) did run. The title of an MCP tool names its server.
# Lost: whether a call worked: `success` only means that it ran. Verified: 0.61.0, by its program.
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
            title="displayName",
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
    names=tool_names.GEMINI,
    not_typed=_NOT_TYPED,
    noise=r"\A<untrusted_context>\n(?:Output: )?"
    r"|\nProcess Group PGID: \d+|\n</untrusted_context>\Z",
)

# Written by: OpenCode, one database for all sessions; and `opencode export`.
# Where: `$XDG_DATA_HOME/opencode/opencode.db`; also copy the files `-wal` and `-shm` beside it.
# A line: a row of the table `part`. A failed command is also `completed`; its exit code shows the
# failure. As in hooks, a sub-agent belongs to the session that started it.
# Lost: the server of an MCP tool: `mail_send` stays one name, but hooks get `send` of `mail`.
# Verified: 1.18.33, by its program.
OPENCODE = Format(
    "opencode",
    marks=({"session_id": ANY, "data/type": ANY}, {"info/id": ANY, "messages/0/parts": ANY}),
    inside=("data", "messages", "parts"),
    shapes=(
        Shape(where={"session_id": ANY}, conversation=("session_id",)),
        Shape(where={"info/id": ANY, "messages": ANY}, conversation=("info/parentID|info/id",)),
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
        Shape(
            where={"info/role": "user", "parts/0/text": ANY, "^info/parentID": None},
            request="parts/0/text",
        ),
    ),
    refused=("The user rejected permission", "The user has specified a rule"),
    names=tool_names.OPENCODE,
)

# Written by: OpenTelemetry, OpenInference (Phoenix) and the SDK of Langfuse.
# Where: a file of OTLP in JSON, or spans of the SDK's `to_json`, one a line.
# A line: spans. A tool's span is read by its attributes of GenAI, OpenInference or Langfuse.
# Messages in a model's span repeat the whole conversation; each is read once.
# Read: `gen_ai.tool.*` and `gen_ai.*.messages`, else OpenInference's `tool.name`, `input.value` and
# `output.value`, else `langfuse.observation.*`; the conversation also from spans of the same trace.
# Lost: arguments and results that the program did not write; names of parameters under LangGraph.
# Verified: SDK 1.45.2, openinference-instrumentation 0.1.72, langfuse 5.0.4, each by its package.
OTEL = Format(
    "otel",
    gives_arguments=False,
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

# Written by: Langfuse: its API and its exports. Where: a file that you saved.
# A line: an observation. Observations of the type TOOL are calls.
# Lost: whether a call worked: there is only the level ERROR; the user's request.
# Verified: langfuse 5.0.4, by its types.
LANGFUSE = Format(
    "langfuse",
    gives_arguments=False,
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

# Written by: LangSmith's API, exports, and client. Where: a file that you saved.
# A line: a run. Chains repeat the same messages, so only runs of the type tool are read. Their
# `session_id` names the project, not the conversation.
# Lost: the user's request. Verified: langsmith 0.15.1, by its package.
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

# Written by: inspect_ai, one file for each evaluation.
# Where: `logs/*.json` and `logs/*.eval`, a zip that needs `pip install zipfile-zstd`.
# A line: a sample of the log. Long texts are in its `attachments`, and are read from there.
# Lost: scores. Verified: 0.3.285, by its package.
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

# Written by: programs that log their use of OpenAI's Responses API. Where: a file that you saved.
# A line: a request, a response, or a list of items.
# Lost: times; success, except of `mcp_call`. Verified: openai 3.57.0, by its types.
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
            output="error/content|error/message|error|output",
            error="error",
        ),
        Shape(where={"role": "user"}, request="content"),
    ),
    history="input",
    repeats_history=True,
)

# Written by: programs that log their use of Anthropic's API. Where: a file that you saved.
# A line: a request, a response, or a list of messages.
# Lost: times; success, where `is_error` is left out. Verified: anthropic 2.14.0, by its types.
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

# Written by: LangChain and LangGraph. Where: a file that you saved.
# A line: messages, by `messages_to_dict`, `dumps` or `model_dump`.
# Lost: times. Verified: langchain-core 1.8.3, by its package.
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

# Written by: tau2-bench. Where: `data/tau2/simulations/*.json`.
# A line: one of the `simulations`, a conversation with its tool calls.
# Lost: rewards. Verified: not verified, by its documentation only.
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

# Written by: spreadsheets and DataFrames.
# Where: `*.csv`, `*.tsv`, and `*.parquet`, which needs `pip install pyarrow`.
# A line: a call. Its columns are found by their usual names, else by `--map`.
# Lost: columns with other names. Verified: pyarrow 26.0.1, by hand.
TABLE = Format(
    "table",
    gives_arguments=False,
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
OWN_COLUMNS = {"tool_name", "input", "output", "metadata"}  # of a row from `Calls.to_frame()`
# Rows of toolmem have none of these columns: a table with one of them comes from elsewhere.
FOREIGN_COLUMNS = {"error", "is_error", "failed", "exit_code", "status", "start_time", "started_at"}


FORMATS = (
    CLAUDE_CODE, CODEX, GEMINI, OPENCODE, OTEL, LANGFUSE, LANGSMITH, INSPECT, TAU2, ANTHROPIC,
    RESPONSES, LANGCHAIN,
)  # fmt: skip
BY_NAME = {each.name: each for each in (*FORMATS, TABLE)}
