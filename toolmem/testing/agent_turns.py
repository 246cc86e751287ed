"""What a scripted model is to do at its turn, and what the agent had sent it before."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call that the model asks for. Text in place of `arguments`: of a tool that takes free text."""

    tool: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""  # as the protocol's own ids look, where it is empty
    namespace: str = ""  # of the tool, where the protocol has one (Responses: that of an MCP server)


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model says, and the calls it asks for."""

    text: str = ""
    calls: tuple[AskedCall, ...] = ()
    input_tokens: int = 100  # that the prompt is said to have had: an agent compacts by it


Turn = ModelTurn | AskedCall | str | Sequence[AskedCall]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a call, as the agent sent it to the model."""

    call_id: str
    text: str
    failed: bool | None = None  # None: the protocol does not say


@dataclass(slots=True, kw_only=True)
class AgentRequest:
    """One request of an agent to its model."""

    number: int = 0  # from 1, in order of arrival
    api: str = ""
    path: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case, without those that hold a key
    model: str = ""
    streams: bool = False
    tools: list[str] = field(default_factory=list)  # names of the tools that the model is offered
    texts: list[str] = field(default_factory=list)  # all that the model reads as text, in order, results of tools too
    answers: list[ToolAnswer] = field(default_factory=list)  # results of tools in the whole conversation, in order
    turn: ModelTurn | None = None  # what it was answered

    @property
    def text(self) -> str:
        """All that the model reads, in one."""
        return "\n".join(self.texts)

    def answer_to(self, call_id: str) -> ToolAnswer | None:
        """The result of this call; None where it is not in the request."""
        return next((answer for answer in reversed(self.answers) if answer.call_id == call_id), None)


Script = Callable[[AgentRequest], Turn]


class AgentApi(ABC):
    """One protocol: how a request is read and a turn written."""

    name: ClassVar[str]
    id_prefix: ClassVar[str]

    @abstractmethod
    def serves(self, path: str) -> bool:
        """Whether a POST to this path asks for a turn."""

    @abstractmethod
    def read(self, request: AgentRequest) -> None:
        """Fill in what stands in `body` and `path`. What is not as expected is left empty."""

    @abstractmethod
    def whole(self, request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
        """The answer in one body."""

    @abstractmethod
    def stream(self, request: AgentRequest, turn: ModelTurn) -> Iterable[bytes]:
        """The answer as server-sent events."""

    def turn(self, said: Turn) -> ModelTurn:
        """In one form, each call with an id."""
        if isinstance(said, ModelTurn):
            text, calls, tokens = said.text, said.calls, said.input_tokens
        else:
            text, tokens = said if isinstance(said, str) else "", 100
            calls = () if isinstance(said, str) else (said,) if isinstance(said, AskedCall) else tuple(said)
        return ModelTurn(text, tuple(self._with_id(call) for call in calls), tokens)

    def _with_id(self, call: AskedCall) -> AskedCall:
        fresh = call.id or f"{self.id_prefix}{secrets.token_hex(12)}"
        return AskedCall(call.tool, call.arguments, fresh, call.namespace)


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; [] of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_of(content: Any) -> list[str]:
    """The texts of a message's content: text itself, or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in dicts(content) if isinstance(part.get("text"), str)]
