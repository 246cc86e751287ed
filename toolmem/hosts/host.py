"""The socket of an agent: what its file says of its events, its answers, its tools and its settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from toolmem.hosts.events import EventKind, HookAnswer, HookEvent
from toolmem.late_dataclasses import dataclass

Scope = Literal["project", "user"]

# The name on the command line -> the module whose `HOST` it is. Loaded when it is asked for: a hook waits for nothing.
HOSTS = {
    "claude-code": "toolmem.hosts.claude_code",
    "codex": "toolmem.hosts.codex",
    "copilot": "toolmem.hosts.copilot",
    "gemini": "toolmem.hosts.gemini",
    "cursor": "toolmem.hosts.cursor",
    "goose": "toolmem.hosts.goose",
    "cline": "toolmem.hosts.cline",
    "opencode": "toolmem.hosts.opencode",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call as the agent's own recording of a session tells it."""

    call_id: str  # as in `HookEvent.call_id`
    tool: str
    arguments: Any
    output: str = ""
    failed: bool | None = None
    seconds: float | None = None
    at: str = ""  # ISO time
    denied: bool = False


class Host(ABC):
    """One agent. Stateless; its file imports nothing but the standard library and `toolmem.hosts`."""

    name: ClassVar[str]  # on the command line
    title: ClassVar[str]  # as people write it
    verified: ClassVar[str]  # the version that its formats were last checked against
    tools: ClassVar[Mapping[str, tuple[str, ...]]]  # its own tools -> what each does: shell, read, write, search, fetch
    cannot: ClassVar[tuple[str, ...]] = ()  # sentences: what no hook of this agent can do
    # Events at which it puts `HookAnswer.context` before its model. What is due elsewhere waits for the next of them.
    context_at: ClassVar[tuple[EventKind, ...]] = (
        *("session_start", "subagent_start", "prompt", "before_call", "after_call"),
    )
    # Events at which it shows its user `HookAnswer.notice`, or tells it to its model.
    notices_at: ClassVar[tuple[EventKind, ...]] = ()
    # Its hooks tell which call an event is of. Else a call that ended is the oldest under way with the same tool and
    # arguments, and the calls of its recordings are known again by these.
    call_ids: ClassVar[bool] = True
    asks: ClassVar[bool] = False  # it asks its user about a call; else what is to be asked about is denied
    # Modes in which its question was tried to reach a person, who decides by it whether a rule holds on.
    question_modes: ClassVar[frozenset[str]] = frozenset()
    # It tells of a session's start with each message of its user, and leaves in the session what it is answered.
    starts_anew: ClassVar[bool] = False
    approves: ClassVar[bool] = False  # a hook may let a call run without a question to the user
    comments: ClassVar[bool] = False  # its settings file may hold comments and a comma before a closing bracket

    @abstractmethod
    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        """The event of one payload; None where it is none of ours. What is not as expected is left empty."""

    @abstractmethod
    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        """The JSON that the agent is answered; {} says nothing. Only keys that this agent's version knows."""

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        """The name that calls of a tool are kept under, by the one that the model knows; `known`: names kept so far."""
        return tool

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        """The JSON file of the user's in which its hooks are named; None where it has files of their own."""
        return None

    def answers_itself(self, command: str, project: Path, home: Path, environment: Mapping[str, str]) -> bool:
        """May its settings answer a question about this command of the shell? True where that cannot be told."""
        return True

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        """The settings with our hooks in them, beside everything that was there. `command`: program and arguments."""
        return dict(settings)

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings without our hooks, and without what only held them."""
        return dict(settings)

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        """Files that are ours alone -> what stands in them. One that begins with `#!` is made executable."""
        return {}

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        """The calls of a session's recording, in order. Lines that are unknown or damaged are passed over."""
        return ()

    def replies_in(self, transcript: Iterable[str]) -> Iterable[str]:
        """What a recording shows that the user typed, and no prompt event tells; never what a model wrote."""
        return ()

    def reply_before(self, transcript: Iterable[str], call: str) -> list[tuple[str, str, Any]]:
        """Id, tool and arguments of the calls that stand before one in the same reply of the model."""
        return []

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        """Session ids and recordings of the sessions in a project, the newest first, as the agent itself keeps them:
        `doctor` must see the calls of an agent whose hooks never ran.
        """
        return ()

    @abstractmethod
    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        """A payload of its event before a call, by which `doctor` tries the installed command."""

    after_install: ClassVar[str] = ""  # what the user must still do, e.g. trust the hooks


def host_of(name: str) -> Host:
    """The agent of this name. Raises KeyError."""
    host: Host = import_module(HOSTS[name]).HOST
    return host
