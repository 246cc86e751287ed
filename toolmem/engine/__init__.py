"""What an agent's hook runs at each step: the prompt, capture and calls, in plain Python on the SQLite store alone.

    with StoreFile("memory.db") as store:
        prompt_for(store, ["search"])                        # rules and guidance, as `ToolMem.prompt` answers them
        user_said(store, "never email Sarah", tools=["send_email"])
        decision = before(store, {"tool_name": "search", "input": {"q": "rain"}}, conversation_id="c1")
        if not decision.stops:
            ...
        after(store, {"tool_name": "search", "input": {"q": "rain"}, "output": "[]"}, decision=decision)

A hook is a process of its own at every step of an agent: nothing here imports pydantic, numpy, YAML, the command line
or an event loop. The decisions are those of the operations: `system_prompt` lays the prompt out, `toolmem.rules`
chooses, captures and keeps rules, `toolmem.store` keeps calls and masks their secrets. Each function loads what it
needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from toolmem.engine.guarding import CallGuard
    from toolmem.engine.store_file import StoreFile
    from toolmem.guard.decision import CheckedRule, GuardDecision, Mode
    from toolmem.light_models import Language, ToolCall, ToolSchema
    from toolmem.models import ToolCallResult
    from toolmem.rules.capture.hook import Captured, Nouns, SessionRule
    from toolmem.rules.evidence import UserEvidence
    from toolmem.rules.pinning import Caps
    from toolmem.stored import Appended

__all__ = [
    "StoreFile",
    "advice_on_retry",
    "after",
    "before",
    "identity_in",
    "prompt_for",
    "rules_on",
    "told_of_failure",
    "user_said",
    "user_spoke",
    "user_took_back",
]

DEFAULT_WORKSPACE = "default"
GUIDANCE_TOKENS = 1_200
KEEP_CALLS = 100


def __getattr__(name: str) -> Any:
    """`StoreFile`, loaded when it is first asked for: who lays out a prompt needs no SQLite."""
    if name != "StoreFile":
        raise AttributeError(f"module 'toolmem.engine' has no attribute {name!r}")
    from toolmem.engine.store_file import StoreFile

    return StoreFile


def prompt_for(
    store: StoreFile,
    tools: Iterable[str | ToolSchema | Mapping[str, Any]] = (),
    *,
    workspace_id: str = DEFAULT_WORKSPACE,
    base_prompt: str = "",
    language: str = "",
    caps: Caps | None = None,
    guidance_tokens: int = GUIDANCE_TOKENS,
    count: Callable[[str], int] | None = None,
) -> str:
    """The system prompt of an agent with these tools: `base_prompt`, the pinned rules, then the tools' guidance.

    Without tools there are the rules of all tools and no guidance. `language`: "zh", or else English. `caps`: as in the
    configuration's section `rules`. `count` None: tokens are estimated, because a vocabulary takes a second to load.
    Raises RequestError, StoreError.
    """
    from toolmem.engine.system_prompt import prompt_of
    from toolmem.providers.tokenizer import estimated_tokens
    from toolmem.rules.kept_rules import with_kept
    from toolmem.rules.pinning import CAPS, chosen_for_prompt, names_of, spaces_of, tell_left_out
    from toolmem.rules.turns import read_tools, tool_names

    catalogue, limits = read_tools(tools), caps or CAPS
    names = names_of(catalogue)
    spaces = spaces_of(names, catalogue)
    records, known = store.prompt_rows(workspace_id, spaces, tool_names(catalogue) if guidance_tokens else [])
    records = with_kept(store, workspace_id, spaces, records, store.clock.now())
    pinned = chosen_for_prompt(records, names, limits, store.clock.now())
    tell_left_out(pinned, limits)
    spoken: Language = "zh" if language == "zh" else ""
    return prompt_of(base_prompt, pinned, known, guidance_tokens, count or estimated_tokens, spoken)


def user_said(
    store: StoreFile,
    message: str,
    *,
    tools: Iterable[str | ToolSchema | Mapping[str, Any]] = (),
    session_id: str = "",
    turn: int | None = None,
    workspace_id: str = DEFAULT_WORKSPACE,
    nouns: Nouns | None = None,
    by_class: bool = False,
    holding: Iterable[SessionRule] = (),
    offered: Iterable[SessionRule] = (),
    evidence: UserEvidence | None = None,
) -> Captured:
    """Keep what the user demands in this message as rules; `session` of the answer holds for this session alone.

    `tools`: all that the agent has, as far as the host knows. `turn`: its number in the session, from 1. A failure is
    logged and named in `failures`; only a message that is no text and tools that are none raise RequestError. Where the
    environment switches capture off, nothing is kept. `by_class`: "never push to main" is kept for every tool that runs
    commands, of whatever agent, and not for those at hand alone. `holding`: the demands of the session so far, which
    the message may lift; `offered`: those of them that an "always" in this message keeps. `evidence`: that the user
    typed it; without it, what it takes back of a store that agents are held to is proposed.
    """
    from toolmem.errors import RequestError
    from toolmem.readers.weight import at_once
    from toolmem.rules.capture.hook import ToolMemoryCaptureHook
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.turns import Turn, read_tools

    if not isinstance(message, str):
        raise RequestError(f"message: expected text, got {type(message).__name__}", field="message")
    rules = RuleStore(store.protocol, workspace_id, clock=store.clock, evidence=evidence)
    spoken = Turn(user_message=message, session_id=session_id, tools=read_tools(tools), number=turn, by_class=by_class)
    if store.held:  # the hook of an agent heard it
        rules = rules.as_told_by(evidence)
    hook = ToolMemoryCaptureHook(rules, nouns=nouns)
    hook.offer(session_id, offered)
    return at_once(hook.after_turn(spoken, holding=holding))


def user_took_back(
    store: StoreFile,
    message: str,
    *,
    tools: Iterable[str | ToolSchema | Mapping[str, Any]] = (),
    session_id: str = "",
    turn: int | None = None,
    workspace_id: str = DEFAULT_WORKSPACE,
    by_class: bool = False,
    evidence: UserEvidence | None = None,
) -> Captured:
    """Withdraw what this message takes back among the rules of a store that it adds none to.

    As `user_said`, for the user's own store where the project has one too: both bind, and the project's keeps.
    """
    from toolmem.readers.weight import at_once
    from toolmem.rules.capture.hook import withdrawn_by
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.turns import Turn, read_tools

    rules = RuleStore(store.protocol, workspace_id, clock=store.clock, evidence=evidence)
    spoken = Turn(user_message=message, session_id=session_id, tools=read_tools(tools), number=turn, by_class=by_class)
    return at_once(withdrawn_by(rules, spoken))


def rules_on(
    store: StoreFile,
    tool_name: str,
    arguments: Any = None,
    *,
    classes: Sequence[str] = (),
    workspace_id: str = DEFAULT_WORKSPACE,
) -> list[CheckedRule]:
    """The rules of a store that bind a call, for `before` of another store. Raises StoreError."""
    from toolmem.engine.guarded_rules import GuardedRules
    from toolmem.guard.tool_classes import scopes_of
    from toolmem.readers.weight import at_once
    from toolmem.readers.written_arguments import opened_arguments

    rules = GuardedRules(store.protocol, workspace_id, store.clock, of_called=True)
    scopes = scopes_of(tool_name, None, opened_arguments(arguments), classes)
    at_once(rules.read_at("", tool_name, scopes))
    return list(rules.of(tool_name, scopes))


def before(
    store: StoreFile,
    call: Mapping[str, Any] | ToolCall,
    *,
    conversation_id: str = "",
    force: bool | None = False,
    tools: Iterable[str | ToolSchema | Mapping[str, Any]] = (),
    cwd: str = "",
    context: str = "",
    workspace_id: str = DEFAULT_WORKSPACE,
    modes: Mapping[str, Mode] | None = None,
    on_error: Literal["open", "closed"] = "open",
    classes: Sequence[str] = (),
    demands: Sequence[CheckedRule] = (),
    lifted: Collection[str] = (),
    final: Collection[str] = (),
) -> GuardDecision:
    """What is to become of a call, by the rules of this moment and by what failed before in its conversation.

    `call`: its `tool_name` and `input`. `force`: the agent repeats a call that was stopped though it knows why; None:
    its host cannot say so. `modes`, `on_error`: as in the configuration's section `guard`. All else is as
    `CallGuard.before` takes it. Raises RequestError for a call without a name, and for tools that are none.
    """
    from toolmem.errors import RequestError
    from toolmem.light_models import ToolSchema
    from toolmem.readers.weight import at_once
    from toolmem.rules.turns import read_tools

    given = call if isinstance(call, Mapping) else call.record()
    name = given.get("tool_name")
    if not isinstance(name, str) or not name.strip():
        raise RequestError("tool_name: is required", field="tool_name")
    declared = [each for each in read_tools(tools) if isinstance(each, ToolSchema)]
    guard = _guard(store, workspace_id, modes, on_error)
    return at_once(
        guard.before(
            name.strip(),
            given.get("input", {}),
            conversation_id=conversation_id,
            force=force,
            tools=declared,
            cwd=cwd,
            context=context,
            classes=classes,
            demands=demands,
            lifted=lifted,
            final=final,
        )
    )


def identity_in(store: StoreFile, tool_name: str, arguments: Any) -> str:
    """By which the guard of a store knows a call again; "" where two calls could not share it. Raises StoreError."""
    from toolmem.guard.conversation import identity_of
    from toolmem.readers.weight import at_once
    from toolmem.readers.written_arguments import opened_arguments
    from toolmem.store.masked import store_key, unmasked

    key = at_once(store_key(unmasked(store.protocol)))
    return identity_of(tool_name.strip(), opened_arguments(arguments), key)


def user_spoke(store: StoreFile, conversation_id: str, *, workspace_id: str = DEFAULT_WORKSPACE) -> None:
    """A message of the user: what failed before in this conversation may be tried again."""
    from toolmem.readers.weight import at_once

    at_once(_guard(store, workspace_id, None, "open").user_spoke(conversation_id))


def advice_on_retry(store: StoreFile, tool_name: str, arguments: Any, *, conversation_id: str, cwd: str = "") -> str:
    """What to know before a call that has just failed is sent again, such as how long to wait; "" for nothing."""
    from toolmem.readers.weight import at_once

    guard = _guard(store, DEFAULT_WORKSPACE, None, "open")
    return at_once(guard.advice_on_retry(tool_name, arguments, conversation_id=conversation_id, cwd=cwd))


def told_of_failure(
    store: StoreFile,
    tool_name: str,
    arguments: Any,
    output: str,
    *,
    conversation_id: str,
    workspace_id: str = DEFAULT_WORKSPACE,
) -> str:
    """What earlier calls show of this failure; "" for nothing. Loads the models of calls: only after a failure."""
    from toolmem.engine.advising import told_of_failure as told
    from toolmem.readers.weight import at_once

    guard = _guard(store, workspace_id, None, "open")
    return at_once(told(guard, tool_name, arguments, output, conversation_id=conversation_id))


def after(
    store: StoreFile,
    call: Mapping[str, Any] | ToolCall | ToolCallResult,
    *,
    decision: GuardDecision | str | None = None,
    workspace_id: str = DEFAULT_WORKSPACE,
    time_zone: str = "UTC",
    keep: int = KEEP_CALLS,
) -> Appended:
    """Keep one recorded call, without its secrets, and learn from it; it is judged later.

    `call`: a record as `add` takes it; one whose id is known is not kept twice. `decision`: what `before` answered, or
    its id. `record` of the answer is None. Raises RecordError, RequestError, StoreError.
    """
    from toolmem.formats.call_records import RecordNotes, read_fields
    from toolmem.light_models import PendingCall, ToolCall
    from toolmem.readers.weight import at_once

    given: Any = call.record() if isinstance(call, ToolCall) else call
    if hasattr(given, "model_dump"):  # `isinstance` would import models, which takes as long as all else here
        given = given.model_dump(mode="json", exclude_defaults=True)
    read: Any = PendingCall(**read_fields(given, 0, clock=store.clock, time_zone=time_zone, notes=RecordNotes()))
    return at_once(_guard(store, workspace_id, None, "open").after(decision, read, keep=keep))


def _guard(
    store: StoreFile, workspace_id: str, modes: Mapping[str, Mode] | None, on_error: Literal["open", "closed"]
) -> CallGuard:
    """One for as long as the file is open."""
    from toolmem.engine.guarding import CallGuard
    from toolmem.guard.decision import MODES
    from toolmem.store.masked import masking

    whole = {**MODES, **(modes or {})}
    place = (workspace_id, on_error, *sorted(whole.items()))
    if place not in store.guards:
        store.guards[place] = CallGuard(
            masking(store.protocol), workspace_id, clock=store.clock, modes=whole, on_error=on_error, of_called=True
        )
    return store.guards[place]
