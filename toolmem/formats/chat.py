"""Conversations in OpenAI's form: the calls of assistants, and the messages that answer them.

LangChain's messages are read as well (`tool_calls: [{name, args, id}]`). A call whose arguments
cannot be found, or that is in the form of another provider, is reported and not read.
The form has no success flag, and seldom times. The user's last message before a call is its
`context`. An id decides which call an answer belongs to, then a name, then the order. Pictures and
other files in base64 are replaced by a note of their kind and size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.models.calls import ToolCallResult
from toolmem.text.display import plain

_encode = msgspec.json.Encoder(enc_hook=str).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=str, order="sorted").encode
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}  # LangChain's `type`
_ARGUMENTS = ("arguments", "input", "args")
_ABOUT_A_CALL = frozenset(
    {"id", "index", "type", "name", "call_id", "function", "custom", "status"}
)
_FOREIGN_PARTS = {  # types of parts in the forms of other providers
    "tool_use": "Anthropic's",
    "tool_result": "Anthropic's",
    "function_call": "the Responses API's",
    "function_call_output": "the Responses API's",
    "tool_call": "LangChain's or OpenTelemetry's",
    "tool_call_response": "OpenTelemetry's",
    "tool-call": "the AI SDK's",
    "tool-result": "the AI SDK's",
    "toolUse": "Bedrock's",
    "toolResult": "Bedrock's",
    "functionCall": "Gemini's",
    "functionResponse": "Gemini's",
}
_FOREIGN_KEYS = frozenset(_FOREIGN_PARTS) - {"function_call"}  # also a key in OpenAI's own form
_RANDOM = re.compile(
    r"(?:^|[_-])(?=[A-Za-z0-9]*\d[A-Za-z])[A-Za-z0-9]{16,}$"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
)
_TIMES = ("create_time", "created_at", "timestamp", "created")


class UserMessage(NamedTuple):
    """What a user said in a conversation."""

    conversation: str  # its id
    text: str


class ChatCall(Struct):
    """A call and its answer. `output` is None if nothing answers the call."""

    id: str
    name: Any
    arguments: Any
    context: str
    time: Any
    output: str | None = None


class Chat(Struct):
    """One conversation: its calls, the texts of its user, and what could not be read."""

    calls: list[ChatCall] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    user_texts: list[tuple[int, str]] = msgspec.field(default_factory=list)  # (calls before, text)
    by_order: int = 0  # answers that were assigned to one of several calls by order alone

    @property
    def unanswered(self) -> int:
        return sum(call.output is None for call in self.calls)


def is_conversation(value: Any) -> bool:
    """Whether a value is an object with `messages`, or a list of messages."""
    if isinstance(value, Mapping):
        return isinstance(value.get("messages"), list)
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(each, Mapping) and "role" in each for each in value)


def read_chat(messages: list[Any]) -> Chat:
    """Read a conversation's messages. `problems` of the result says what could not be read."""
    chat = Chat()
    context = ""
    # Unanswered calls, in groups of one message: by id, by name, and all of them under "".
    waiting: dict[str, list[list[ChatCall]]] = {}
    for position, message in enumerate(messages):
        if not isinstance(message, Mapping):
            chat.problems.append(f"message {position + 1} is no object")
            continue
        role = message.get("role") or _ROLES.get(str(message.get("type")))
        if kind := _foreign_part(message):
            problem = f"{kind} is {_FOREIGN_PARTS[kind]} form, which is not read here"
            chat.problems.append(f"message {position + 1}: {problem}")
        if role == "user":
            context = text_of(message.get("content"))
            chat.user_texts.append((len(chat.calls), context))
        elif role == "assistant":
            made, problems = _calls(message, context)
            chat.problems += [f"message {position + 1}: {problem}" for problem in problems]
            chat.calls += made
            for key in {"", *(_label(name) for call in made for name in (call.id, call.name))}:
                waiting.setdefault(key, []).append(made)
        elif message.get("tool_calls"):
            name = plain(_label(message.get("role")), 60)
            chat.problems.append(f"message {position + 1}: calls of the role {name!r} are not read")
        elif role in ("tool", "function"):
            call, by_order = _take_answered(waiting, message)
            if call is None:
                asked = _label(message.get("tool_call_id")) or _label(message.get("name"))
                target = (asked or "nothing")[:60]
                chat.problems.append(f"message {position + 1} answers {target!r}: no such call")
            else:
                call.output = text_of(message.get("content"))
                chat.by_order += by_order
    return chat


def _foreign_part(message: Mapping[str, Any]) -> str:
    """The type of a call or answer in another provider's form; "" if there is none."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    kinds = (tool_part(part) for part in (message, *parts) if isinstance(part, Mapping))
    return next(filter(None, kinds), "")


def tool_part(part: Mapping[str, Any]) -> str:
    """Return the type of a call or answer in another provider's form, as "tool_use"; else ""."""
    kind = part.get("type")
    if isinstance(kind, str) and kind in _FOREIGN_PARTS:
        return kind
    has_none = _FOREIGN_KEYS.isdisjoint(part)
    return "" if has_none else next(key for key in part if key in _FOREIGN_KEYS)


def _calls(message: Mapping[str, Any], context: str) -> tuple[list[ChatCall], list[str]]:
    """Read the calls of a message. Also returns why other calls cannot be read."""
    calls: list[ChatCall] = []
    problems: list[str] = []
    asked = message.get("tool_calls")
    found = [each for each in asked if isinstance(each, Mapping)] if isinstance(asked, list) else []
    if asked and not found:
        problems.append("`tool_calls` is no list of calls")
    if isinstance(message.get("function_call"), Mapping):
        found.append({"function": message["function_call"]})
    time = next((message[key] for key in _TIMES if message.get(key) is not None), None)
    for each in found:
        bodies = (each.get("function"), each.get("custom"), each)
        body = next(one for one in bodies if isinstance(one, Mapping))
        given = [body[key] for key in _ARGUMENTS if body.get(key) not in (None, "")]
        arguments = given[0] if given else None
        unknown = [key for key in body if key not in (*_ARGUMENTS, *_ABOUT_A_CALL) and body[key]]
        if arguments is None and unknown:
            name = plain(_label(body.get("name")), 60)
            key = plain(str(unknown[0]), 60)
            problems.append(f"no `arguments` in the call of {name!r}, but {key!r}")
        else:
            call_id = _label(each.get("id"))
            calls.append(ChatCall(call_id, body.get("name"), arguments, context, time))
    return calls, problems


def _take_answered(
    waiting: dict[str, list[list[ChatCall]]], message: Mapping[str, Any]
) -> tuple[ChatCall | None, bool]:
    """Remove and return the call that a message answers; True if only the calls' order decided.

    Of two calls with the same id, the newer one is answered.
    """
    call_id = _label(message.get("tool_call_id"))
    name = _label(message.get("name")) or _label(message.get("tool_name"))
    groups = waiting.get(call_id or name, [])
    while groups:
        group = groups[-1]
        fitting = [call for call in group if not call_id or call.id == call_id]
        named = [call for call in fitting if call.name == name] if name else []
        if named or (name and not call_id):
            fitting = named
        if fitting:
            group.remove(fitting[0])
            return fitting[0], len(fitting) > 1
        groups.pop()  # all its calls are answered
    return None, False


def records_of(value: Any, seen: dict[str, int]) -> tuple[list[dict[str, Any]], Chat]:
    """Return (the answered calls as records for `read_records`, the whole conversation).

    `seen`: how often each id occurred in the file so far; a repeated id gets a number.
    """
    body = value if isinstance(value, Mapping) else {"messages": value}
    chat = read_chat(body["messages"])
    answered = [call for call in chat.calls if call.output is not None]
    given = _label(body.get("id"))
    digest = json_digest(answered, 8).hex()
    conversation = _unique(given or f"conversation-{digest}", seen)
    records = []
    for call in answered:
        metadata = {"conversation_id": conversation}
        record = {
            "tool_name": call.name,
            "input": read_arguments(call.arguments),
            "output": call.output,
            "context": call.context,
            "create_time": call.time,
            "metadata": metadata,
        }
        if call.id:
            metadata["tool_call_id"] = call.id
            if is_random(call.id):
                record["id"] = json_digest((call.id, call.name, record["input"])).hex()
            elif given:
                record["id"] = _unique(f"{given}/{call.id}", seen)
        records.append(record)
    return records, chat


def _unique(name: str, seen: dict[str, int]) -> str:
    number = seen[name] = seen.get(name, 0) + 1
    return name if number == 1 else _unique(f"{name}#{number}", seen)


def read_arguments(arguments: Any) -> Any:
    """Decode a JSON object, list or string. No arguments become {}; all else stays as it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if value is None:
        return {}
    return value if isinstance(value, dict | list | str) else arguments


_TYPED_PARTS = ("text", "input_text")
_PART_KEYS = frozenset({"type", "text", "refusal", "content"})


def text_of(content: Any) -> str:
    """Return the text of a message's `content`; for an image or sound its type: `[image_url]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, str) or (isinstance(part, Mapping) and not _PART_KEYS.isdisjoint(part))
        for part in content  # otherwise it is data, such as rows of a table
    ):
        return "\n".join(_part_text(part) for part in content)
    return json.dumps(content, ensure_ascii=False, default=str)


def typed_text(content: Any) -> str:
    """Return a user message's text, without results of tools, which some programs put there too."""
    if isinstance(content, list):
        content = [
            part
            for part in content
            if isinstance(part, str)
            or (isinstance(part, Mapping) and part.get("type", "text") in _TYPED_PARTS)
        ]
    return text_of(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    texts = (part.get(key) for key in ("text", "refusal", "content"))
    return next((text for text in texts if isinstance(text, str)), f"[{part.get('type')}]")


def json_digest(value: Any, size: int = 12) -> bytes:
    """Return a digest of `size` bytes of a JSON value; the order of keys counts.

    Ids of stored calls are made of it, so it must never change.
    """
    return blake2b(_encode(value), digest_size=size).digest()


def sorted_digest(value: Any) -> bytes:
    """Like `json_digest` with 8 bytes, whatever the order of keys. It must never change either."""
    return blake2b(_encode_sorted(value), digest_size=8).digest()


def is_random(call_id: str) -> bool:
    """Whether an id was drawn at random, as Anthropic's `toolu_01...`, so that no call repeats it.

    Ids such as numbers, `call_0` or the name of the tool are used for several calls.
    """
    return _RANDOM.search(call_id) is not None


def _label(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return str(value) if type(value) is int else ""


MIN_PICTURE = 1_000  # characters of base64; shorter texts stay
_BASE64 = re.compile(
    r"(?:data:([\w.+-]+/[\w.+-]+);base64,|(?<![A-Za-z0-9+/=]))"
    rf"([A-Za-z0-9+/]{{{MIN_PICTURE},}}={{0,2}})"
)
_TYPES = {  # by the beginning of base64
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}


def without_pictures(call: ToolCallResult) -> ToolCallResult:
    """Replace base64 in a call's input and output by a note such as `[image/png, 225 kB]`."""
    return replace(
        call, input=change_texts(call.input, _without_base64), output=_without_base64(call.output)
    )


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with `change` applied to all its texts, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change_texts(k, change): change_texts(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [change_texts(each, change) for each in value]
    return value


def _without_base64(text: str) -> str:
    return _BASE64.sub(_file_note, text) if len(text) >= MIN_PICTURE else text


def _file_note(found: re.Match[str]) -> str:
    kind = found[1] or next(
        (kind for start, kind in _TYPES.items() if found[2].startswith(start)), ""
    )
    if not kind and not re.search(r"[a-z]", found[2]):
        return found[0]  # one letter repeated, or hexadecimal digits
    return f"[{kind or 'base64'}, {len(found[2]) * 3 // 4 // 1000 or 1} kB]"
