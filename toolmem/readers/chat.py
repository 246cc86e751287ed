"""Chat messages in OpenAI's form: what the user said, which calls assistants made, and what answers each.

Files, conversations that rules are captured from, and the turns of a session are read by this one reader.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ChatCall:
    """A call of an assistant's message; `answer` is the message that answers it, None where none does."""

    id: str  # "" where the message gives none
    name: Any  # as it stands there: nobody has checked it
    arguments: Any
    message: int  # position of its message
    turn: int  # position in `Chat.said`
    answer: Mapping[str, Any] | None = None

    @property
    def output(self) -> str:
        return text_of(self.answer.get("content")) if self.answer else ""


@dataclass(slots=True)
class Chat:
    """What `read_chat` makes of messages."""

    said: list[Any] = field(default_factory=list)  # the content that begins each turn; None: nobody said anything
    calls: list[ChatCall] = field(default_factory=list)  # in the order in which they were made
    problems: list[tuple[str, str]] = field(default_factory=list)  # (tool name or "", what is wrong)


def read_chat(messages: Iterable[Any]) -> Chat:
    """Each message of the user begins a turn. What is wrong takes nothing else with it; time is linear."""
    reader = _ChatReader(Chat())
    for position, message in enumerate(messages):
        reader.read(message, position)
    return reader.chat


@dataclass(slots=True)
class _ChatReader:
    chat: Chat
    by_id: dict[str, _Waiting] = field(default_factory=dict)
    by_name: dict[str, _Waiting] = field(default_factory=lambda: defaultdict(_Waiting))  # calls without an id; "": any

    def read(self, message: Any, position: int) -> None:
        if not isinstance(message, Mapping):
            self.chat.problems.append(("", f"message {position + 1} is not an object"))
            return
        role = message.get("role")
        if role == "user":
            self.chat.said.append(message.get("content"))
        elif role in ("assistant", "tool", "function"):
            self.chat.said = self.chat.said or [None]
            (self._ask if role == "assistant" else self._answer)(message, position)

    def _ask(self, message: Mapping[str, Any], position: int) -> None:
        asked = message.get("tool_calls")
        calls = [call for call in asked if isinstance(call, Mapping)] if isinstance(asked, list) else []
        if isinstance(message.get("function_call"), Mapping):
            calls.append({"function": message["function_call"]})
        for raw in calls:
            body = next((raw[key] for key in ("function", "custom") if isinstance(raw.get(key), Mapping)), raw)
            arguments = body["arguments"] if "arguments" in body else body.get("input")
            call = ChatCall(key_of(raw.get("id")), body.get("name"), arguments, position, len(self.chat.said) - 1)
            self.chat.calls.append(call)
            self._wait(call)

    def _wait(self, call: ChatCall) -> None:
        if not call.id:
            self.by_name[""].put(call)
            if isinstance(call.name, str) and call.name:
                self.by_name[call.name].put(call)
            return
        # An id used again in a later message closes the earlier call: nobody will answer that one any more.
        if call.id not in self.by_id or self.by_id[call.id].message != call.message:
            self.by_id[call.id] = _Waiting()
        self.by_id[call.id].put(call)

    def _answer(self, message: Mapping[str, Any], position: int) -> None:
        given, name = key_of(message.get("tool_call_id")), key_of(message.get("name"))
        # Without an id the name decides; without a name too, the oldest call of the last message that asked.
        waiting = self.by_id[given] if given in self.by_id else self.by_name.get(name)
        call = waiting.take() if waiting else None
        if call is None:
            what = f"call {given[:60]!r}" if given else f"a call of {name[:60]!r}"
            problem = f"message {position + 1} answers {what}, which no message before it made"
            self.chat.problems.append((name, problem))
            return
        call.answer = message


@dataclass(slots=True)
class _Waiting:
    """Calls that may be without an answer yet, those of one message together."""

    groups: list[deque[ChatCall]] = field(default_factory=list)
    message: int = -1  # of the newest group

    def put(self, call: ChatCall) -> None:
        if self.message != call.message:
            self.groups.append(deque())
            self.message = call.message
        self.groups[-1].append(call)

    def take(self) -> ChatCall | None:
        """The oldest of the newest message that has any."""
        while self.groups:
            while self.groups[-1]:
                call = self.groups[-1].popleft()
                if call.answer is None:
                    return call
            self.groups.pop()
        return None


def key_of(value: Any) -> str:
    """An id or a name as text; "" where there is none."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip() else ""


# ---------------------------------------------------------------- the texts inside


def text_of(content: Any, *, own_words: bool = False) -> str:
    """The text of a message's `content`: a string, a list of parts, or null; anything else as JSON text.

    `own_words`: nothing but what its author wrote as text. A tool's result or a file that a user's message carries
    beside is not what the user said.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if own_words:
        written = [_written(part) for part in content] if isinstance(content, list) else []
        return "\n".join(text for text in written if text is not None)
    if isinstance(content, list) and all(isinstance(part, (str, Mapping)) for part in content):
        return "\n".join(_part_text(part) for part in content)
    return _json_text(content)


def _written(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else None


def _part_text(part: str | Mapping[str, Any]) -> str:
    if isinstance(part, str):
        return part
    for key in ("text", "refusal", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = part.get("type")
    return f"[{kind}]" if isinstance(kind, str) else _json_text(part)  # an image or a sound: said, not carried


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "[nested too deeply to be shown]"
