"""The conversations of an agent, each with a session of the memory.

    chat = Conversations(memory, "c1").of()
    system_prompt += chat.prompt(tools, "never email Sarah")
    call = chat.begin("send_email", {"to": "bob"})
    if call.is_denied:
        ...                      # the model reads call.reason
    advice = chat.end(call, "sent")

Failures of toolmem are logged, and the call runs, unless `guard.on_error` is closed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.formats.chat import read_arguments
from toolmem.guard.decision import fallback_decision
from toolmem.memory.toolmem import Workspace
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.session import AgentSession, CallRecorder
from toolmem.session.functions import as_json
from toolmem.session.recorder import OnAsk, RecordedCall

log = logging.getLogger("toolmem.adapters")
MAX_ENTRIES = 1_000  # of each: conversations, calls under way


class User(TypedDict, total=False):
    """How the user is reached, in every adapter."""

    on_ask: OnAsk | None  # asks about a call that needs consent; without it the call does not run
    on_told: Callable[[str], Any] | None  # shows what was kept, refused, asked or lifted


class Conversations:
    """The conversations by name. `conversation_id` "": each session of the framework is one."""

    def __init__(
        self,
        memory: Workspace,
        conversation_id: str = "",
        *,
        on_ask: OnAsk | None = None,
        on_told: Callable[[str], Any] | None = None,
    ) -> None:
        if not isinstance(memory, Workspace):
            raise RequestError(f"memory: expected a ToolMem, got {type(memory).__name__}", "memory")
        self.memory, self.on_ask, self.on_told = memory, on_ask, on_told
        self._given = conversation_id
        self._default = uuid.uuid4().hex
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_id: object = "") -> Conversation:
        """The conversation of a session of the framework; made if it is new."""
        name = self._given or str(session_id or "") or self._default
        with self._lock:
            if name not in self._known:
                remember(self._known, name, Conversation(self, name))
            return self._known[name]


class Conversation:
    """One conversation. Safe to use from several threads."""

    def __init__(self, chats: Conversations, name: str) -> None:
        self.memory, self.name = chats.memory, name
        self._chats = chats
        self._session: AgentSession | None = None
        self._newest = ""  # message of the user
        self._lock = threading.RLock()

    def session(self, tools: Sequence[Any] = ()) -> AgentSession:
        """The session; started by the first use. Raises StoreError."""
        with self._lock:
            if self._session is None:
                memory, services = self.memory, self.memory.services
                session = AgentSession.start(
                    memory, tools=tools, on_ask=self._chats.on_ask, conversation_id=self.name
                )
                modes = services.settings.guard
                if modes.repeats == "advise":  # advice would not stop a framework's loop
                    modes = replace(modes, repeats="enforce")
                    session.recorder.guard = services.guard(memory.workspace_name, modes)
                self._session = session
            return self._session

    def prompt(self, tools: list[Any], message: str) -> str:
        """Rules and guidance for the system prompt, once the user's newest message is read."""
        with _logged("the prompt has no rules and no guidance"):
            session = self.session(tools)
            for each in schemas_of(tools):
                session.recorder.schemas.setdefault(folded_name(each.name), each)
            from toolmem.rules.reader.pasted import typed  # takes long to load

            words = typed(message)
            with self._lock:
                is_new = bool(words) and message != self._newest
                self._newest = message or self._newest
            if is_new and session.is_in_turn:
                session.after_turn(calls=[])
            messages = session.messages(words if is_new else None)
            self._tell(session)
            return "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        return ""

    def _tell(self, session: AgentSession) -> None:
        if self._chats.on_told is not None:
            with _logged("the user was not told"):
                for line in session.take_told():
                    self._chats.on_told(line)

    def begin(self, tool_name: str, arguments: Any) -> RecordedCall:
        """Check a call before it runs. `arguments`: an object, or its JSON."""
        given = read_arguments(arguments)
        values = as_json(given if isinstance(given, Mapping) else {"": given})
        with _logged("a call is not held against the memory"):
            session = self.session()
            begun = session.recorder.begin(tool_name, values)
            self._tell(session)
            return begun
        call = CallRecorder().begin(tool_name, values)
        now, settings = self.memory.services.clock.now(), self.memory.services.settings
        call.decision = fallback_decision(tool_name, self.name, now, settings.guard.on_error)
        return call

    def end(
        self, call: RecordedCall, output: Any = None, *, error: BaseException | str | None = None
    ) -> str:
        """Record how a call ended. Returns advice for the model beside the result; "" if none.

        `error`: what the tool raised, or the text that the framework made of it.
        """
        advice = [call.decision.advice if call.decision else ""]
        if isinstance(error, str | Exception):
            tool, text = str(call.record["tool_name"]), str(error)
            with _logged("nothing is told of a failure"):
                found = self.memory.advise(tool, call.arguments, text, conversation_id=self.name)
                advice.append(found.text)
        with _logged("a call was not kept"):
            session = self.session()
            if error is None:
                session.recorder.succeeded(call, output)
            else:
                raised = ToolFailed(error) if isinstance(error, str) else error
                session.recorder.failed(call, raised)
            session.keep_calls()
        text = "\n".join(filter(None, advice))
        return f"[Added by toolmem] {text}" if text else ""

    async def result(
        self,
        call: RecordedCall,
        run: Callable[..., Awaitable[Any]],
        *given: Any,
        later: tuple[type[BaseException], ...] = (),
    ) -> Any:
        """Await `run(*given)` and record its exceptions, but `later`: the call runs again."""
        try:
            return await run(*given)
        except later:
            raise
        except BaseException as error:
            await asyncio.to_thread(self.end, call, error=error)
            raise

    def note(self, tool_name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a note tool. Returns its answer to the model, as JSON."""
        with _logged("a demand was not noted"):
            session = self.session()
            answer = session.call_tool(tool_name, arguments)
            self._tell(session)
            return answer
        return json.dumps({"outcome": "refused", "told": "the memory cannot be reached"})


@contextmanager
def _logged(failure: str) -> Iterator[None]:
    """Log any error of the block: the agent goes on."""
    try:
        yield
    except Exception as error:
        log.error("%s: %s: %s", failure, type(error).__name__, error)


class ToolFailed(Exception):
    """A failure of which the framework passes only the text."""


def remember(newest: OrderedDict[str, Any], name: str, value: Any) -> None:
    """Add an entry; the oldest of more than MAX_ENTRIES is forgotten."""
    newest[name] = value
    if len(newest) > MAX_ENTRIES:
        newest.popitem(last=False)


def joined(*texts: str) -> str:
    """The texts that are not empty, as paragraphs."""
    return "\n\n".join(filter(None, texts))


def schema_of(tool: Any, parameters: Any) -> dict[str, Any]:
    """The MCP schema of an object with a name and a description."""
    return {"name": tool.name, "description": tool.description or "", "inputSchema": parameters}
