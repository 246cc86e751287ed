"""Flatten spans of OpenTelemetry and samples of inspect_ai, which paths cannot describe."""

from __future__ import annotations

from typing import Any

from toolmem.formats.chat import change_texts, read_arguments

_ATTACHMENT = "attachment://"
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
_NAMES = ("gen_ai.tool.name", "tool.name")
_IDS = ("gen_ai.tool.call.id", "tool.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "langfuse.observation.input")
_RESULTS = ("gen_ai.tool.call.result", "output.value", "langfuse.observation.output")
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_KINDS = {
    "gen_ai.operation.name": "execute_tool",
    "openinference.span.kind": "TOOL",
    "langfuse.observation.type": "tool",
}


def flat_span(unit: Any) -> Any:
    """Return spans in OTLP's form as a list of flat objects, or a span of the SDK as one object."""
    resources = unit.get("resourceSpans") or [unit]
    groups = [each for one in resources for each in one.get("scopeSpans") or ()]
    if not groups:
        one = _flat(unit)
        return {**one, "conversation": one["conversation"] or one["trace"]}
    spans = [span for group in groups if isinstance(group, dict) for span in group.get("spans", ())]
    flat = [_flat(span) for span in spans if isinstance(span, dict)]
    named = {each["trace"]: each["conversation"] for each in flat if each["conversation"]}
    for each in flat:  # a tool's span seldom names the conversation
        each["conversation"] = each["conversation"] or named.get(each["trace"], each["trace"])
    return sorted(flat, key=lambda each: str(each["start"]))


def _flat(span: dict[str, Any]) -> dict[str, Any]:
    attributes = _attributes(span.get("attributes"))
    trace = span.get("traceId") or (span.get("context") or {}).get("trace_id") or ""
    found: dict[str, Any] = {
        "trace": trace,
        "conversation": _first(attributes, _CONVERSATIONS) or "",
        "is_tool": any(attributes.get(key) == kind for key, kind in _KINDS.items()),
        "start": span.get("startTimeUnixNano") or span.get("start_time"),
        "end": span.get("endTimeUnixNano") or span.get("end_time"),
    }
    if found["is_tool"]:
        found |= _tool(span, attributes)
    else:
        given = (read_arguments(attributes.get(key)) for key in _MESSAGES)
        found["messages"] = [each for many in given if isinstance(many, list) for each in many]
    return found


def _tool(span: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the span's call. Without arguments and result it only times another span's call."""
    status = span.get("status") or {}
    code = status.get("code", status.get("status_code"))
    failed = code in (2, "STATUS_CODE_ERROR", "ERROR") or "error.type" in attributes
    failed = failed or attributes.get("langfuse.observation.level") == "ERROR"
    reason = status.get("message") or status.get("description")
    reason = reason or _first(attributes, ("langfuse.observation.status_message", "error.type"))
    arguments = _first(attributes, _ARGUMENTS)
    result = _first(attributes, _RESULTS)
    word = "ok" if code in (1, "STATUS_CODE_OK", "OK") else ""
    if failed:
        word = "error"
        result = result if result is not None else _exception(span) or reason or ""
    name = _first(attributes, _NAMES) or str(span.get("name", "")).removeprefix("execute_tool ")
    return {
        "id": _first(attributes, _IDS) or span.get("spanId") or "",
        "tool": None if arguments is None and result is None else name,
        "arguments": _keywords(read_arguments(arguments)),
        "result": _message_text(result),
        "status": word,
    }


def _keywords(arguments: Any) -> Any:
    """Remove the wrapper of Langfuse's decorator from arguments that were all given by name."""
    is_wrapped = isinstance(arguments, dict) and arguments.keys() == {"args", "kwargs"}
    return arguments["kwargs"] if is_wrapped and not arguments["args"] else arguments


def _message_text(result: Any) -> Any:
    """The content of a tool message that LangChain's instrumentation wrote as JSON."""
    if isinstance(result, str) and '"tool_call_id"' in result:
        message = read_arguments(result)
        inner = message.get("data", message) if isinstance(message, dict) else None
        return inner.get("content", result) if isinstance(inner, dict) else result
    return result


def _exception(span: dict[str, Any]) -> str:
    for event in span.get("events") or ():
        about = _attributes(event.get("attributes"))
        if "exception.message" in about:
            return f"{about.get('exception.type', 'error')}: {about['exception.message']}"
    return ""


def _attributes(given: Any) -> dict[str, Any]:
    """Return attributes by key. OTLP has a list of keys and typed values, the SDK an object."""
    if isinstance(given, dict):
        return given
    pairs = [each for each in given or () if isinstance(each, dict)]
    return {each.get("key", ""): _value(each.get("value")) for each in pairs}


def _value(typed: Any) -> Any:
    """A value of OTLP, such as `{"stringValue": "boots"}`."""
    if not isinstance(typed, dict) or not typed:
        return None if typed == {} else typed
    kind, value = next(iter(typed.items()))
    if kind == "arrayValue":
        return [_value(each) for each in value.get("values", ())]
    if kind == "kvlistValue":
        return {each.get("key"): _value(each.get("value")) for each in value.get("values", ())}
    return int(value) if kind == "intValue" else value


def _first(attributes: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def with_attachments(sample: Any) -> Any:
    """Replace each `attachment://...` in an inspect_ai sample by the text that it stands for."""
    attachments = sample.get("attachments") or {}

    def restored(text: str) -> str:
        key = text.removeprefix(_ATTACHMENT)
        return attachments.get(key, text) if key != text else text

    if not attachments:
        return sample
    texts = {key: sample.get(key) for key in ("input", "events")}
    return {**sample, **change_texts(texts, restored)}
