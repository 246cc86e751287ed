"""The conversations of an agent, each with an AgentSession.

    conversation = Conversations(memory, "c1").of()
    system_prompt += conversation.prompt(tools, "never email Sarah")
    call = conversation.begin("send_email", {"to": "bob"})
    if call.is_denied:
        ...                      # the model reads call.reason
    advice = conversation.end(call, "sent")

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

from toolmem.formats.chat import read_arguments
from toolmem.guard.decision import fallback_decision
from toolmem.memory.toolmem import Workspace, require
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.session import AgentSession, CallRecorder
from toolmem.session.functions import as_json
from toolmem.session.recorder import OnAsk, RecordedCall

log = logging.getLogger("toolmem.adapters")
MAX_ENTRIES = 1_000  # conversations, or calls under way


class User(TypedDict, total=False):
    """How an adapter asks the user, and shows them messages."""

    on_ask: OnAsk | None  # asks about a call that needs consent; without it the call does not run
    on_told: Callable[[str], Any] | None  # shows what was kept, refused, requested or lifted


class Conversations:
    """The conversations by id. Without `conversation_id` each session of the framework is one."""

    def __init__(
        self,
        memory: Workspace,
        conversation_id: str = "",
        *,
        on_ask: OnAsk | None = None,
        on_told: Callable[[str], Any] | None = None,
    ) -> None:
        require(Workspace, "memory", "a ToolMem or a workspace of one", memory)
        self.memory = memory
        self.on_ask = on_ask
        self.on_told = on_told
        self._given = conversation_id
        self._default = uuid.uuid4().hex
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_id: object = "") -> Conversation:
        """Return the conversation of a session of the framework, a new one if there is none."""
        name = self._given or str(session_id or "") or self._default
        with self._lock:
            if name not in self._known:
                remember(self._known, name, Conversation(self, name))
            return self._known[name]


class Conversation:
    """One conversation. Threads may share it."""

    def __init__(self, conversations: Conversations, name: str) -> None:
        self.memory = conversations.memory
        self.name = name
        self._on_ask = conversations.on_ask
        self._on_told = conversations.on_told
        self._session: AgentSession | None = None
        self._newest = ""  # message of the user
        self._lock = threading.RLock()

    def session(self, tools: Sequence[Any] = ()) -> AgentSession:
        """Return the session, started at the first use. Raises StoreError."""
        with self._lock:
            if self._session is None:
                session = AgentSession.start(
                    self.memory, tools=tools, on_ask=self._on_ask, conversation_id=self.name
                )
                services = self.memory.services
                modes = services.settings.guard
                if modes.repeats == "advise":  # advice would not stop a framework's loop
                    modes = replace(modes, repeats="enforce")
                    session.recorder.guard = services.guard(self.memory.workspace_name, modes)
                self._session = session
            return self._session

    def prompt(self, tools: list[Any], message: str) -> str:
        """Read the user's newest message. Returns rules and guidance for the system prompt."""
        with logged("the prompt has no rules and no guidance"):
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
            self._show_messages(session)
            return "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        return ""

    def _show_messages(self, session: AgentSession) -> None:
        if self._on_told is not None:
            with logged("the user was not shown a message"):
                for line in session.take_told():
                    self._on_told(line)

    def begin(self, tool_name: str, arguments: Any) -> RecordedCall:
        """Check a call before it runs. `arguments`: a mapping, or its JSON."""
        given = read_arguments(arguments)
        values = as_json(given if isinstance(given, Mapping) else {"": given})
        with logged("a call was not checked"):
            session = self.session()
            begun = session.recorder.begin(tool_name, values)
            self._show_messages(session)
            return begun
        call = CallRecorder().begin(tool_name, values)
        now = self.memory.services.clock.now()
        settings = self.memory.services.settings
        call.decision = fallback_decision(tool_name, self.name, now, settings.guard.on_error)
        return call

    def end(
        self, call: RecordedCall, output: Any = None, *, error: BaseException | str | None = None
    ) -> str:
        """Record how a call ended. Returns advice that the model reads beside the result, or "".

        `error`: what the tool raised, or the text that the framework made of it.
        """
        advice = [call.decision.advice if call.decision else ""]
        if isinstance(error, str | Exception):
            tool, text = str(call.record["tool_name"]), str(error)
            with logged("there is no advice on a failure"):
                found = self.memory.advise(tool, call.arguments, text, conversation_id=self.name)
                advice.append(found.text)
        with logged("a call was not kept"):
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
        """Await `run(*given)`. Records its exception, except `later`: after those it runs again."""
        try:
            return await run(*given)
        except later:
            raise
        except BaseException as error:
            await asyncio.to_thread(self.end, call, error=error)
            raise

    def note(self, tool_name: str, arguments: Mapping[str, Any] | str) -> str:
        """Note a demand with one of the note tools. Returns the answer to the model, as JSON."""
        with logged("a demand was not noted"):
            session = self.session()
            answer = session.call_tool(tool_name, arguments)
            self._show_messages(session)
            return answer
        return json.dumps({"outcome": "refused", "told": "the memory cannot be reached"})


@contextmanager
def logged(failure: str) -> Iterator[None]:
    """Log any error of the block, so that the agent goes on."""
    try:
        yield
    except Exception as error:
        log.error("%s: %s: %s", failure, type(error).__name__, error)


class ToolFailed(Exception):
    """A failure that the framework passes on as text alone."""


def remember(entries: OrderedDict[str, Any], name: str, value: Any) -> None:
    """Add an entry. If there are now more than MAX_ENTRIES, remove the oldest."""
    entries[name] = value
    if len(entries) > MAX_ENTRIES:
        entries.popitem(last=False)


def joined(*texts: str) -> str:
    """Join the texts that are not empty as paragraphs."""
    return "\n\n".join(filter(None, texts))


def schema_of(tool: Any, parameters: Any) -> dict[str, Any]:
    """Make a tool's MCP schema from the JSON Schema of its parameters."""
    return {"name": tool.name, "description": tool.description or "", "inputSchema": parameters}
