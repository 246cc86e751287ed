"""AgentSession: what an agent is sent at each turn, and what its turns teach."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.app.call_guards import modes_of
from toolmem.engine.demanded_rules import demanded
from toolmem.engine.system_prompt import guidance_of, prompt_of
from toolmem.errors import RequestError, ToolMemError
from toolmem.guard.decision import GuardDecision
from toolmem.models import Language, ToolSchema
from toolmem.operations.prompt import qwen_tokens
from toolmem.ops import UpdateVectorStoreOp
from toolmem.ops.asked_notes import AskForDemandsOp
from toolmem.readers.chat import read_chat
from toolmem.rules.capture.durations import without_duration
from toolmem.rules.capture.hook import Captured, SessionRule, ToolMemoryCaptureHook, extract
from toolmem.rules.effectiveness import ToolEffectivenessTracker
from toolmem.rules.prefetch import OnError, prefetch_tool_memory_rules
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.section import LeftOut, render_since
from toolmem.rules.turns import Turn, read_tools, tool_names
from toolmem.session.chat_messages import (
    Compressor,
    Message,
    keep_newest,
    message_tokens,
    records_of,
    user_message_of,
    uses_of,
    without_host_keys,
)
from toolmem.session.consent import OnAsk
from toolmem.session.demand_tools import DemandTools, ToolForm, demand_tools
from toolmem.session.guarded_calls import DemandsAlone, GuardedCalls, SessionChecks
from toolmem.session.recorder import DecidedCall, OnDenied
from toolmem.session.rules_since import RulesSince
from toolmem.session.session_advice import SessionAdvice
from toolmem.session.session_calls import SessionCalls, count_uses
from toolmem.session.session_demands import Binding, SessionDemands
from toolmem.session.session_judging import SessionJudging
from toolmem.session.session_words import SessionWords

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp

log = logging.getLogger("toolmem.session")

OnUntrusted = Literal["raise", "ignore"]
P = ParamSpec("P")
R = TypeVar("R")


class AgentSession(SessionAdvice):
    """One session of an agent.

        session = await AgentSession.start(app, workspace_id="team", tools=schemas)
        reply = call_model(session.messages(user_message))
        await session.after_turn([reply, *tool_messages])
        await session.close()

    The system prompt (base text, pinned rules, guidance) is frozen at the start and stays byte-identical. What the
    user demands later binds from the next turn on: it follows the buffer in a message of its own that no compressor
    sees. Make one by `start`.
    """

    def __init__(
        self,
        app: ToolMemApp,
        rules: RuleStore,
        *,
        workspace_id: str,
        tools: Sequence[str | ToolSchema],
        language: Language,
        max_buffer_tokens: int | None,
        compressor: Compressor,
        count_tokens: Callable[[str], int],
        timeout: float,
        ignores_store: bool = False,
        on_denied: OnDenied = "raise",
        on_ask: OnAsk | None = None,
        guest: str = "",
    ) -> None:
        self.app = app
        self.rules = rules
        self.workspace_id = workspace_id
        self.session_id = uuid.uuid4().hex
        self.system_prompt = ""
        self.buffer: list[Message] = []
        self.session_rules: list[SessionRule] = []  # demands on this session alone
        self._timeout = timeout
        self._tools = tuple(tools)
        self._language = language
        self._max_buffer_tokens = max_buffer_tokens
        self._compressor = compressor
        self._count = count_tokens
        self._ignores_store = ignores_store
        self._guest = guest
        self._since = RulesSince()
        self._demands = SessionDemands(rules)
        self._pending_user: str | None = None
        self._turns = 0
        self._judging = SessionJudging(app, workspace_id, self.session_id, self._tools)
        settings = app.settings
        captures = bool(settings.rules.capture) and not guest
        self._hook = ToolMemoryCaptureHook(rules, nouns=settings.rules.nouns, enabled=captures, hears=True)
        self._noting = DemandTools(rules, workspace_id, self.session_id, guest=guest, hears_words=True)
        asks = settings.rules.capture == "model" and not ignores_store
        self._asking = app.configured.bind(AskForDemandsOp()) if asks else None
        self._keeping = app.configured.bind(UpdateVectorStoreOp())
        self._tracker = ToolEffectivenessTracker(rules.store, workspace_id)
        self._calls = SessionCalls(app, self.session_id, self._guarded(rules.workspace), on_denied, on_ask, guest)
        self._words = SessionWords(app, rules, self.session_id, self._calls, guest=bool(guest))

    @classmethod
    async def start(
        cls,
        app: ToolMemApp | ToolMem | AsyncToolMem,
        *,
        workspace_id: str | None = None,
        rules_workspace_id: str | None = None,
        tools: Sequence[str | ToolSchema | Mapping[str, Any]] = (),
        base_prompt: str = "",
        language: Language | None = None,
        max_buffer_tokens: int | None = None,
        compressor: Compressor = keep_newest,
        count_tokens: Callable[[str], int] | None = None,
        timeout: float = 5.0,
        on_error: OnError = "raise",
        on_untrusted: OnUntrusted = "raise",
        on_denied: OnDenied = "raise",
        on_ask: OnAsk | None = None,
        guest: str = "",
    ) -> Self:
        """Fetch rules and guidance, and freeze the system prompt.

        `app`: a ToolMem or AsyncToolMem, whose workspace is meant where none is named, or a ToolMemApp ("default").
        `tools`: the agent's catalogue, names or schemas (none: rules of all tools are pinned). `rules_workspace_id`:
        rules may be private where guidance is shared. `max_buffer_tokens`: the conversation is compressed beyond it,
        by `compressor`; None: never. `count_tokens`: default Qwen's tokenizer.

        A store that does not answer within `timeout` seconds raises StoreError: a session without its critical rules
        is unsafe. `on_error="empty"` is the caller's explicit choice to go without. Critical rules beyond
        `rules.max_critical_characters` are not in the prompt: that is warned of, and `left_out` names them.

        A store that was found in the working directory, and that this user neither made nor trusts, raises
        StoreUntrusted. `on_untrusted="ignore"` starts with none of its rules and guidance: turns are stored, and what
        the user demands binds in this session.

        `on_denied`: whether a call of a `tool` that is denied raises CallDenied or answers the reason ("return").
        `on_ask(decision) -> bool`, plain or async, asks the user about a call that a rule lets run only with their
        consent; without it such a call is not run, and its reason says to ask them.

        `guest`: who the user is, where the agent serves others than its owner: what a guest demands binds in this
        session alone.
        """
        if on_untrusted not in ("raise", "ignore"):
            raise RequestError(
                f"on_untrusted: expected 'raise' or 'ignore', got {on_untrusted!r}", field="on_untrusted"
            )
        if isinstance(app, ToolMem | AsyncToolMem):
            workspace_id = workspace_id or app.workspace_id
            app = app.app
        workspace_id = workspace_id or "default"
        session = cls(
            app,
            await app.rule_store(rules_workspace_id or workspace_id),
            workspace_id=workspace_id,
            tools=read_tools(tools),
            language=("zh" if app.settings.language == "zh" else "") if language is None else language,
            max_buffer_tokens=max_buffer_tokens,
            compressor=compressor,
            count_tokens=count_tokens or qwen_tokens,
            timeout=timeout,
            ignores_store=on_untrusted == "ignore" and bool(app.services.untrusted()),
            on_denied=on_denied,
            on_ask=on_ask,
            guest=guest,
        )
        await session._freeze(base_prompt, on_error)
        return session

    async def _freeze(self, base_prompt: str, on_error: OnError) -> None:
        """Make the system prompt of what the store holds now."""
        if self._ignores_store:
            self.system_prompt = base_prompt.strip()
            return
        section = await prefetch_tool_memory_rules(
            self.rules, self._tools, language=self._language, timeout=self._timeout, on_error=on_error
        )
        self._since.freeze(section.pinned)
        budget, names = self.app.settings.guidance_tokens, tool_names(self._tools)
        store = await self.app.services.store_named()
        known = guidance_of(await store.records(self.workspace_id, names)) if names and budget else []
        self.system_prompt = prompt_of(base_prompt, section.pinned, known, budget, self._count, self._language)

    # -- what the model is sent

    def messages(self, user_message: str | None = None) -> list[Message]:
        """What to send: the frozen system prompt, the conversation, and the demands made since the start.

        `user_message` opens a turn; `after_turn` closes it. None: the conversation as it stands. The store is asked
        for rules that were put or deleted meanwhile, by whomever; where it does not answer, those known go on to bind.
        """
        if user_message is not None:
            self._hear(user_message)
            self._pending_user = user_message
        try:
            if not self._ignores_store:
                self._since.take(self.app.rules_now(self.rules, self._tools, timeout=self._timeout))
        except ToolMemError as error:
            log.error("the rules could not be read again: %s", error)
        messages: list[Message] = []
        if self.system_prompt:
            messages.append({"role": "system", "content": self.system_prompt})
        messages += [without_host_keys(message) for message in self.buffer]
        if self._pending_user is not None:
            messages.append({"role": "user", "content": self._pending_user})
        since = render_since(
            self._since.new,
            self.session_rules,
            self._since.withdrawn,
            self._language,
            self.app.settings.rules.max_critical_characters,
        )
        if told := "\n\n".join(filter(None, (since, self._words.for_model))):
            messages.append({"role": "system", "content": told})
        return messages

    def _hear(self, user_message: str) -> None:
        """Before anything is done for it."""
        self._noting.user_said(user_message)
        self._calls.checks.user_spoke()
        self.session_rules = self._words.on_message(user_message, self._turns + 1, self.session_rules)

    def compress(self, max_tokens: int) -> None:
        """Hand the conversation, and nothing else, to the compressor."""
        self.buffer = list(self._compressor(self.buffer, max_tokens, self._count))
        self._calls.checks.compacted()

    @property
    def errors(self) -> list[str]:
        """Of judging in the background."""
        return self._judging.errors

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Rules that the caps leave no room for."""
        return self._since.left_out

    @property
    def buffer_tokens(self) -> int:
        return sum(message_tokens(message, self._count) for message in self.buffer)

    # -- what the model notes

    def tools(self, form: ToolForm = "openai") -> list[dict[str, Any]]:
        """Tools to offer the model beside its own, as its API takes them: `note_demand` and `lift_demand`.

        It writes down what the user demands; `call_tool` checks that against the user's words, and holds it.
        """
        return demand_tools(form)

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """What one of `tools` answers the model, as JSON; what was kept binds from the next call on.

        Raises RequestError for another name, StoreError.
        """
        catalogue = self._calls.catalogue(self._tools)
        return await self._noting.call(name, arguments, catalogue, self._turns + 1)

    # -- before a call

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a tool's function: its calls are held against the rules, recorded, and handed to `after_turn`.

        As `CallRecorder.tool`; the demands made of this session bind as well.
        """
        return self._calls.tool(function)

    async def check(
        self, tool_name: str, arguments: Mapping[str, Any] | str, *, force: bool | None = None
    ) -> GuardDecision:
        """What is to become of a call that your own code runs; `arguments`: an object, or its JSON as a model gave it.

        Where the answer `stops`, its `reason` is the tool's result: put it into the `tool` message. `after_turn` joins
        calls and decisions. `force`: the model repeats a call though it knows why it was stopped; None: it has no way
        to say so. Rules are never forced.
        """
        return await self._calls.check(tool_name, arguments, force)

    @property
    def decisions(self) -> list[DecidedCall]:
        """The calls that something stood against, oldest first; the newest thousand."""
        return list(self._calls.recorder.decisions)

    def _guarded(self, rules_workspace_id: str) -> SessionChecks:
        if self._ignores_store:
            return DemandsAlone(modes_of(self.app.configured), self._demands_now, self._tools)
        return GuardedCalls(
            self.app,
            workspace_id=self.workspace_id,
            rules_workspace_id=rules_workspace_id,
            conversation_id=self.session_id,
            tools=self._tools,
            demands=self._demands_now,
        )

    def _demands_now(self) -> Binding:
        """What binds beside the stored rules: the demands of this session, and of the message being answered."""
        said = self._pending_user or "" if self.app.settings.rules.capture else ""
        spoken = Turn(said, (), self.session_id, self._calls.catalogue(self._tools), self._turns + 1)
        return self._demands.now(self.session_rules, spoken, self._since.holding)

    async def after_turn(
        self,
        turn: Sequence[Message] = (),
        *,
        calls: Sequence[Mapping[str, Any]] | None = None,
        user_message: str | None = None,
    ) -> Captured:
        """Learn from a turn: `turn` in OpenAI chat messages, or `calls` (as of `add_tool_call_result`).

        The user's message is taken from `turn`, `user_message`, or the last call of `messages`. Every call is stored
        before this returns; its judgement follows in the background, or at `close` where `session.judging` is
        deferred. Answers what the capture hook made of it; its `notes` are for the user.
        Raises RequestError where a turn cannot be read.
        """
        chat = read_chat(turn)
        said = user_message_of(chat) or user_message or self._pending_user or ""
        if said and self._pending_user is None:
            self._hear(said)
        calls_read = self._calls.read(records_of(chat) if calls is None else calls, said, self._turns + 1)
        self._turns += 1
        self._noting.user_said(said)
        messages = [dict(message) for message in turn]
        if said and not any(message.get("role") == "user" for message in messages):
            messages.insert(0, {"role": "user", "content": said})
        self._pending_user = None
        self.buffer += messages
        uses = uses_of(call for _, call in calls_read)
        spoken = Turn(said, uses, self.session_id, self._calls.catalogue(self._tools), self._turns)
        asked = await self._noting.noted_by_model(self.app, self._asking, spoken)
        captured = await self._hook.after_turn(spoken, holding=self.session_rules, noted=self._noting.noted_in(spoken))
        asked.tell(captured)
        captured.told[:0] = self._words.told
        before = self.session_rules
        self._bind(spoken, captured)
        self._words.answered(self.session_rules, before)
        await self._calls.learn([call for _, call in calls_read])
        if calls_read:
            await self._store(calls_read)
        await count_uses(self._tracker, self.rules.store, uses)
        await self._refresh_rules()
        if self._max_buffer_tokens is not None and self.buffer_tokens > self._max_buffer_tokens:
            self.compress(self._max_buffer_tokens)
        return captured

    def _bind(self, turn: Turn, captured: Captured) -> None:
        """The demands that hold for the rest of this session: made for it, or not kept, or never read again."""
        demands = [each for each in (*self.session_rules, *captured.session) if each not in captured.lifted]
        alone = (self._ignores_store or self._guest) and self.app.settings.rules.capture
        if captured.failures or alone:
            demands += [each for step in extract(turn).said for each in demanded(step)]
        stored = [] if self._ignores_store else captured.rules  # "always" keeps what held for the session
        kept = {rule.rule for rule in stored}
        self.session_rules = [each for each in dict.fromkeys(demands) if without_duration(each.rule) not in kept]

    async def _store(self, calls: Sequence[tuple[int, Any]]) -> None:
        """Keep the calls unjudged at once, so that nothing is lost; then have them judged."""
        given = {"workspace_id": self.workspace_id, "judged_calls": list(calls), "keep_calls": self.app.keep_calls}
        await self.app.run_bound(self._keeping, "", given)
        self._judging.add(call.tool_name for _, call in calls)

    async def _refresh_rules(self) -> None:
        """Which rules changed since the prompt was frozen, whoever changed them."""
        if self._ignores_store:
            return
        try:
            now = await self.rules.quiet().rules_for_prompt(self._tools)
        except ToolMemError as error:  # what is known goes on to bind
            log.error("the rules could not be read again: %s", error)
            return
        self._since.take(now)

    async def close(self) -> None:
        """Wait until every call of the session is judged (or failed to be: see `errors`)."""
        await self._judging.finish()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
