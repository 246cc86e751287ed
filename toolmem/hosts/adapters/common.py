"""What every adapter speaks to: the conversations of an agent, whose calls are held, kept and learned from.

    talk = AgentMemory(mem, "c1").of()
    call = await talk.begin("send_email", {"to": "bob"}, "call_1")
    if call.stops:
        ...                          # the model reads call.reason; the call is kept as not run
    await talk.end(call, output)     # or error=...

No trouble of ours reaches the agent: it is logged, and the call runs, or does not where `guard.on_error` is closed.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.engine.advising import told_of_failure
from toolmem.engine.demanded_rules import checked_demands
from toolmem.engine.ended_calls import call_of, field_of
from toolmem.engine.system_prompt import guidance_of, prompt_of
from toolmem.errors import RequestError, ToolMemError
from toolmem.guard.decision import GuardDecision
from toolmem.hosts.agent_call import INTERRUPTS
from toolmem.hosts.agent_call import AgentCall as AgentCall
from toolmem.hosts.events import call_id_of
from toolmem.hosts.typed_prompts import typed
from toolmem.light_models import Language, ToolSchema
from toolmem.operations.prompt import qwen_tokens
from toolmem.readers.chat import text_of
from toolmem.readers.written_arguments import read_arguments
from toolmem.rules.capture.hook import ToolMemoryCaptureHook
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.section import PinnedRules, render_since
from toolmem.rules.turns import Turn, read_tools, tool_names
from toolmem.session.consent import Consent, OnAsk
from toolmem.session.demand_tools import MOST_HEARD, DemandTools
from toolmem.session.demand_tools import demand_tools as declared
from toolmem.session.guarded_calls import GuardedCalls, Work
from toolmem.session.session_demands import Binding
from toolmem.session.tool_functions import as_json

if TYPE_CHECKING:
    from toolmem.engine.guarding import CallGuard
    from toolmem.protocols import MemoryStore

log = logging.getLogger("toolmem.hosts")

_MOST_CONVERSATIONS = 1000
_MOST_IDS = 10_000


class AgentMemory:
    """A memory in the hands of an agent.

    `conversation`: None is the framework's own session where it names one, else one that is made. `on_ask(decision) ->
    bool`, plain or async, asks the user about a call that a rule lets run only with their consent; without it such a
    call is not run. `capture`: whether what the user says is read for demands, as far as the framework shows it; not so
    for an agent that only other agents speak to. `demand_tools`: the agent's model is offered `note_demand` and
    `lift_demand` beside its own tools, where what the user says is read. `stops_repeats`: where nobody configured
    `guard.repeats`, a call that failed is stopped when it is repeated unchanged, and not only advised against; not so
    where one conversation is several.
    """

    def __init__(
        self,
        memory: ToolMem | AsyncToolMem,
        conversation: str | None = None,
        *,
        on_ask: OnAsk | None = None,
        capture: bool = True,
        demand_tools: bool = True,
        stops_repeats: bool = True,
    ) -> None:
        if not isinstance(memory, ToolMem | AsyncToolMem):
            raise RequestError(
                f"memory: expected a ToolMem or AsyncToolMem, got {type(memory).__name__}", field="memory"
            )
        self._memory = memory
        self._given = conversation or ""
        self._made = uuid.uuid4().hex
        capture = capture and bool(memory.app.settings.rules.capture)
        self.own_tools = declared("mcp") if demand_tools and capture else []  # `name`, `description`, `inputSchema`
        self._options: dict[str, Any] = {
            "on_ask": on_ask,
            "capture": capture,
            "own_tools": frozenset(each["name"] for each in self.own_tools),
            "strict": stops_repeats,
        }
        self._known: OrderedDict[str, AgentConversation] = OrderedDict()

    def of(self, session_id: object = "") -> AgentConversation:
        """The conversation of a session of the framework."""
        name = self._given or str(session_id or "") or self._made
        if name not in self._known:
            self._known[name] = AgentConversation(self._memory, name, **self._options)
            if len(self._known) > _MOST_CONVERSATIONS:
                self._known.popitem(last=False)
        return self._known[name]


class AgentConversation(GuardedCalls):
    """One conversation: `..._now` of each method is for synchronous code, also in the thread of a running loop."""

    def __init__(
        self,
        memory: ToolMem | AsyncToolMem,
        conversation_id: str,
        *,
        on_ask: Any,
        capture: bool,
        own_tools: frozenset[str],
        strict: bool,
    ) -> None:
        super().__init__(
            memory.app,
            workspace_id=memory.workspace_id,
            conversation_id=conversation_id,
            by_portal=isinstance(memory, ToolMem),
            demands=lambda: self._binding,
        )
        self._consent = Consent(on_ask)
        self._captures = capture
        self._strict = strict
        self._binding = Binding()
        self._turn = 0
        self._heard: tuple[str, str] = ("", "")
        self._said: deque[str] = deque(maxlen=MOST_HEARD)
        self._own_tools = own_tools
        self._catalogue: tuple[str | ToolSchema, ...] = ()
        self._ended_ids: OrderedDict[str, int] = OrderedDict()

    async def _with_guard(self, work: Work[Any], store: MemoryStore | None = None) -> Any:
        return await work(await self._app.services.call_guard(*self._workspaces, beside=store, strict=self._strict))

    # -- around a call

    async def begin(self, tool_name: str, arguments: Any, call_id: object = "") -> AgentCall:
        """What is to become of a call; one that is stopped is kept as not run. `arguments`: an object, or its JSON."""
        call = self._begun(tool_name, arguments, call_id)
        if call.is_kept:
            return call
        try:
            decision = await self.before(tool_name, call.record["input"])
        except ToolMemError as error:  # a store that is not trusted
            decision = self._undecided(error)
        self._decided_on(call, await self._consent.settled(decision))
        if call.stops:
            await self._keep(call, {**call.record, "output": call.reason})
        return call

    def begin_now(self, tool_name: str, arguments: Any, call_id: object = "") -> AgentCall:
        call = self._begun(tool_name, arguments, call_id)
        if call.is_kept:
            return call
        try:
            decision = self.before_now(tool_name, call.record["input"])
        except ToolMemError as error:
            decision = self._undecided(error)
        self._decided_on(call, self._consent.settled_now(decision))
        if call.stops:
            self._keep_now(call, {**call.record, "output": call.reason})
        return call

    async def end(self, call: AgentCall, output: Any = None, *, error: BaseException | str | None = None) -> None:
        """How it ended; `error`: as the tool raised it, or as the framework tells it. Told twice it is kept once."""
        await self._keep(call, call.ended(output, error), learns=not isinstance(error, INTERRUPTS))

    def end_now(self, call: AgentCall, output: Any = None, *, error: BaseException | str | None = None) -> None:
        self._keep_now(call, call.ended(output, error), learns=not isinstance(error, INTERRUPTS))

    def _begun(self, tool_name: str, arguments: Any, call_id: object) -> AgentCall:
        record = {
            "tool_name": tool_name,
            "input": _input(arguments),
            "id": self._id(call_id),
            "create_time": datetime.now(UTC).isoformat(),
            "conversation_id": self.conversation_id,
            "context": self._heard[0],
        }
        return AgentCall(record, GuardDecision("", "allow"), is_kept=self.answers(tool_name))

    def _id(self, call_id: object) -> str:
        """A framework that runs a call again under the same id makes another call, once the first has ended."""
        told = call_id_of(self.conversation_id, str(call_id or "")) or uuid.uuid4().hex
        ended = self._ended_ids.get(told, 0)
        return f"{told}#{ended + 1}" if ended else told

    def _has_ended(self, call: AgentCall) -> bool:
        """Note it. True where that was known."""
        if call.is_kept:
            return True
        call.is_kept = True
        told = str(call.record["id"]).partition("#")[0]
        self._ended_ids[told] = self._ended_ids.pop(told, 0) + 1
        if len(self._ended_ids) > _MOST_IDS:
            self._ended_ids.popitem(last=False)
        return False

    def _decided_on(self, call: AgentCall, decision: GuardDecision) -> None:
        call.decision = decision
        call.begun = time.perf_counter()

    async def _keep(self, call: AgentCall, record: Mapping[str, Any], *, learns: bool = True) -> None:
        try:
            if not self._has_ended(call):
                await self._reached(self._kept(call, record, learns))
        except Exception as error:
            log.error("a call was not kept: %s", error)

    def _keep_now(self, call: AgentCall, record: Mapping[str, Any], *, learns: bool = True) -> None:
        try:
            if not self._has_ended(call):
                self._reached_now(self._kept(call, record, learns))
        except Exception as error:
            log.error("a call was not kept: %s", error)

    def _kept(self, call: AgentCall, record: Mapping[str, Any], learns: bool) -> Work[None]:
        async def work(guard: CallGuard) -> None:
            read = call_of(record, self._app.clock)
            if learns:
                await guard.after(call.decision, read)
                if record.get("success") is False:
                    call.shown = await told_of_failure(
                        guard,
                        read.tool_name,
                        read.input,
                        read.output,
                        conversation_id=self.conversation_id,
                        context=field_of(read, guard.context_key),
                    )
            else:  # an interrupted call says nothing about its input
                await guard.store.append_calls(guard.workspace_id, read.tool_name, [read], self._app.keep_calls)

        return work

    # -- what the model notes

    def answers(self, tool_name: str) -> bool:
        """Whether it is one of `own_tools`: no rule stops it, and it is no call of the agent's."""
        return tool_name in self._own_tools

    async def answer(self, tool_name: str, arguments: Mapping[str, Any] | str, call_id: object = "") -> str:
        """What one of `own_tools` answers the model, as JSON."""
        try:
            return str(await self._reached(self._answered(tool_name, arguments)))
        except Exception as error:
            return _without_answer(error)

    def answer_now(self, tool_name: str, arguments: Mapping[str, Any] | str, call_id: object = "") -> str:
        try:
            return str(self._reached_now(self._answered(tool_name, arguments)))
        except Exception as error:
            return _without_answer(error)

    def _answered(self, tool_name: str, arguments: Mapping[str, Any] | str) -> Work[str]:
        async def work(guard: CallGuard) -> str:
            noting = DemandTools(
                self._rule_store(guard), guard.workspace_id, self.conversation_id, heard=list(self._said)
            )
            return await noting.call(tool_name, arguments, self._catalogue, self._turn)

        return work

    # -- before the model is asked

    async def prompt(
        self, tools: Iterable[Any] = (), *, said: Any = "", at: object = "", all_known: bool = True
    ) -> str:
        """Rules and guidance for the system prompt, after the user's newest message was read for what it demands.

        `tools`: schemas or names. `said`: text, or content in parts; `at`: what tells the message from another of the
        same words. `all_known`: these are all tools that the agent has; else there are the rules of every tool.
        """
        try:
            return await self._reached(self._prompted(tools, said, at, all_known))
        except Exception as error:
            return _without_prompt(error)

    def prompt_now(self, tools: Iterable[Any] = (), *, said: Any = "", at: object = "") -> str:
        try:
            return self._reached_now(self._prompted(tools, said, at, True))
        except Exception as error:
            return _without_prompt(error)

    def _prompted(self, tools: Iterable[Any], said: Any, at: object, all_known: bool) -> Work[str]:
        async def work(guard: CallGuard) -> str:
            catalogue = _catalogue(tools)
            self._catalogue = catalogue or self._catalogue
            self._tools = [tool for tool in catalogue if isinstance(tool, ToolSchema)] or self._tools
            rules = self._rule_store(guard)
            heard = (typed(text_of(said, own_words=True)), str(at))
            if heard[0] and heard != self._heard:
                self._heard = heard
                self._said.append(heard[0])
                self._turn += 1
                await guard.user_spoke(self.conversation_id)
                await self._capture(
                    rules, Turn(heard[0], (), self.conversation_id, catalogue, self._turn, by_class=True)
                )
            pinned = await rules.quiet().rules_for_prompt(catalogue if all_known else ())
            return await self._section(guard, pinned, tool_names(catalogue))

        return work

    async def _capture(self, rules: RuleStore, spoken: Turn) -> None:
        if not self._captures:
            return
        hook = ToolMemoryCaptureHook(rules, nouns=self._app.settings.rules.nouns, enabled=True, hears=True)
        captured = await hook.after_turn(spoken, holding=self._binding.demands)
        held = [each for each in self._binding.demands if each not in captured.lifted]
        demands = list(dict.fromkeys([*held, *captured.session]))
        self._binding = Binding(demands, set(), checked_demands(demands, spoken.tools, self._app.clock.now()))

    async def _section(self, guard: CallGuard, pinned: PinnedRules, names: list[str]) -> str:
        settings = self._app.settings
        language: Language = "zh" if settings.language == "zh" else ""
        budget = settings.guidance_tokens
        records = await guard.store.records(guard.workspace_id, names) if names and budget else []
        here = render_since((), self._binding.demands, (), language)
        section = prompt_of("", pinned, guidance_of(records), budget, qwen_tokens, language)
        return "\n\n".join(part for part in (section, here) if part)

    def _rule_store(self, guard: CallGuard) -> RuleStore:
        services, caps = self._app.services, self._app.settings.rules
        return RuleStore(
            guard.store,
            guard.rules_workspace_id,
            clock=self._app.clock,
            embedder=services.embedder_of_store(),
            max_in_prompt=caps.max_in_prompt,
            max_characters=caps.max_characters,
            max_critical_characters=caps.max_critical_characters,
        )


def _input(arguments: Any) -> Any:
    """As JSON has it, whatever objects a program gives its tools."""
    given = read_arguments(arguments)
    if isinstance(given, Mapping):
        return as_json(given)
    return given if isinstance(given, str) else as_json({"": given})[""]


def described(tools: Iterable[Any], describe: Callable[[Any], Any]) -> list[Any]:
    """The tools' schemas, as far as `describe` can tell them."""
    found = []
    for tool in tools:
        try:
            found.append(describe(tool))
        except Exception as error:  # of whatever object a framework takes for a tool
            log.warning("a tool of type %s is unknown to the rules: %s", type(tool).__name__, error)
    return found


def _catalogue(tools: Iterable[Any]) -> tuple[str | ToolSchema, ...]:
    """As far as they can be read."""
    read: list[str | ToolSchema] = []
    for tool in tools:
        try:
            read += read_tools([tool])
        except ToolMemError as error:
            log.warning("a tool is unknown to the rules: %s", error)
    return tuple(read)


def _without_answer(error: Exception) -> str:
    log.error("a demand was not noted: %s", error)
    return json.dumps({"outcome": "refused", "told": f"the memory cannot be reached ({type(error).__name__})"})


def _without_prompt(error: Exception) -> str:
    log.error("the prompt has no rules and no guidance: %s", error)
    return ""
