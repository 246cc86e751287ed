"""AgentSession: make the messages of each turn, and learn from the turn."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, Literal, Self

import msgspec

from toolmem.errors import RequestError, ToolMemError
from toolmem.formats.records import read_records
from toolmem.guard import Guard
from toolmem.guard.decision import plain_allow
from toolmem.guard.pending_demands import capture_or_hold
from toolmem.guard.shown_guidance import permitted_records
from toolmem.guidance.shown import guidance_section, require_trusted
from toolmem.llm.tokens import estimated_tokens
from toolmem.memory.toolmem import Workspace, require
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.operations import OPERATIONS
from toolmem.ops.parse_tool_call_result import DEFAULT_WINDOW
from toolmem.rules.capture import ToolMemoryCaptureHook, ended_since
from toolmem.rules.changes import Actor
from toolmem.rules.identity import folded_name
from toolmem.rules.prompt import changed_since, prefetch_tool_memory_rules_blocking
from toolmem.rules.replies import forget_session, without_ways_out
from toolmem.rules.store import RuleListing
from toolmem.rules.turn import Captured, ToolUse, Turn, is_guest
from toolmem.session.messages import (
    CheckedCall,
    Compressor,
    CountTokens,
    Message,
    is_same_call,
    keep_newest,
    key_of,
    message_tokens,
    read_object,
    records_of_turn,
    tool_use,
    user_message_of,
    without_host_keys,
)
from toolmem.session.recorder import CallRecorder, OnAsk, OnDenied

log = logging.getLogger("toolmem.session")

OnError = Literal["raise", "empty"]
NOTE_TOOLS = ("note_demand", "lift_demand")
MAX_USER_MESSAGES = 500  # the newest, in which a note must quote the user
MAX_CHECKED_CALLS = 1_000  # that have not ended yet


class AgentSession:
    """One session of an agent. Make it by `start`.

        session = AgentSession.start(memory, tools=schemas)
        reply = call_model(session.messages(user_message))
        session.after_turn([reply, *tool_messages])
        session.close()

    The system prompt (base text, pinned rules, guidance) is frozen at the start, byte for byte.
    Later demands are in a message after the conversation. No compressor sees this message.
    """

    def __init__(
        self,
        memory: Workspace,
        rules_memory: Workspace,
        recorder: CallRecorder,
        max_buffer_tokens: int | None,
        compressor: Compressor,
        count_tokens: CountTokens,
    ) -> None:
        self.memory = memory
        self.rules = rules_memory.rules
        self.recorder = recorder
        self.tool = recorder.tool  # decorator: calls are checked, and recorded for `after_turn`
        self.conversation_id = recorder.conversation_id
        self.system_prompt = ""
        self.buffer: list[Message] = []
        self.errors: list[str] = []  # of judging
        self._rules_memory = rules_memory
        self._max_buffer_tokens = max_buffer_tokens
        self._compressor, self._count_tokens = compressor, count_tokens
        self._hook = ToolMemoryCaptureHook(
            self.rules,
            actor=Actor("user", session=self.conversation_id),
            enabled=None if memory.services.settings.rules.capture else False,
        )
        # (message, when it was typed)
        self._user_messages: deque[tuple[str, datetime]] = deque(maxlen=MAX_USER_MESSAGES)
        self._open_message: str | None = None  # the user's message of the turn under way
        self._turns = 0
        self._checked_calls: deque[CheckedCall] = deque(maxlen=MAX_CHECKED_CALLS)
        self._unreported = Captured()  # what `after_turn` is to return
        self._judge_thread = ThreadPoolExecutor(1, "toolmem judging")
        self._tools_to_judge: dict[str, None] = {}
        self._stored_calls: list[ToolCallResult] = []  # by `keep_calls`, in the turn under way
        self._unstored_calls: list[ToolCallResult] = []  # as the store failed; they are tried again

    @classmethod
    def start(
        cls,
        memory: Workspace,
        *,
        workspace: str | None = None,
        rules_workspace: str | None = None,
        tools: Sequence[Any] = (),
        base_prompt: str = "",
        max_buffer_tokens: int | None = None,
        compressor: Compressor = keep_newest,
        count_tokens: CountTokens = estimated_tokens,
        timeout: float = 5.0,
        on_error: OnError = "raise",
        on_denied: OnDenied = "raise",
        on_ask: OnAsk | None = None,
        conversation_id: str = "",
        session_id: str = "",  # what OpenHuman calls the conversation_id
        speaker: str | None = None,
    ) -> Self:
        """Fetch rules and guidance, and freeze the system prompt.

        `tools`: names or schemas of all tools of the agent; without any, the prompt has the rules
        of all tools. `rules_workspace`: where rules are, if not in the workspace of the guidance.
        `max_buffer_tokens`: a longer conversation is compressed. `speaker`: `owner` or `guest:ID`;
        None: setting `session.speaker`. A guest's demands lift no rule, and end with the session.

        Raises StoreError if the store gives no rules within `timeout` seconds, as a session without
        its critical rules is unsafe. With `on_error="empty"` the session starts without them.
        """
        require(Workspace, "memory", "a ToolMem or one of its workspaces", memory)
        own = Workspace(memory.engine, workspace or memory.workspace_name)
        rules = Workspace(memory.engine, rules_workspace or own.workspace_name)
        require_trusted(rules.rules.store)
        recorder = CallRecorder(
            rules,
            conversation_id=conversation_id or session_id,
            tools=tools,
            on_denied=on_denied,
            on_ask=on_ask,
            is_guests=is_guest(speaker, memory.services.settings.session.speaker),
        )
        session = cls(own, rules, recorder, max_buffer_tokens, compressor, count_tokens)
        session._freeze(base_prompt, timeout, on_error)
        return session

    def _freeze(self, base_prompt: str, timeout: float, on_error: OnError) -> None:
        settings = self.memory.services.settings
        language = settings.language
        names = [each.name for each in self.recorder.schemas.values()]
        section = prefetch_tool_memory_rules_blocking(
            self.rules,
            names,
            language=language,
            caps=settings.rules,
            timeout=timeout,
            on_error=on_error,
        )
        self._pinned = section.pinned
        self._listing = RuleListing(section.pinned.rules, [])
        budget = settings.guidance.max_tokens_prompt
        guidance = ""
        if on_error == "raise":
            self._guard.load()
            if names and budget:
                records = self.memory.services.store().records(self.memory.workspace_name, names)
                guards = [self._guard, self.memory.services.guard(self.memory.workspace_name)]
                records = permitted_records(records, guards, language, self.conversation_id)
                guidance = guidance_section(records, budget, language)
        parts = (base_prompt.strip(), section.text, guidance)
        self.system_prompt = "\n\n".join(filter(None, parts))

    def messages(self, user_message: str | None = None) -> list[Message]:
        """What to send the model: system prompt, conversation, and rules made since the start.

        `user_message` opens a turn, `after_turn` closes it. If the store does not answer, the rules
        are those that were read last.
        """
        if user_message is not None:
            self._add_user_message(user_message)
            self._open_message = user_message
        found = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        found += [without_host_keys(message) for message in self.buffer]
        if self._open_message is not None:
            found.append({"role": "user", "content": self._open_message})
        try:
            self._listing = self.rules.all_rules(self.conversation_id)
            if pending := self._guard.pending.get(self.conversation_id):
                self._listing.rules.extend(pending.demands)
        except ToolMemError as error:
            log.error("the rules could not be read again: %s", error)
        settings = self.memory.services.settings
        limit = settings.rules.max_critical_characters
        if since := changed_since(self._pinned, self._listing, settings.language, limit):
            found.append({"role": "system", "content": since})
        return found

    def _add_user_message(self, message: str) -> None:
        """Let the guard and the rules read a message, before the agent acts on it."""
        self._user_messages.append((message, self.memory.services.clock.now()))
        turn = self._turn(message, [])
        if self._guard.lost and self._turns == 0 and not turn.is_guests:
            self._unreported.told.append(self._guard.lost)

        def capture() -> Captured:
            told = self._guard.user_spoke(self.conversation_id, message, is_guests=turn.is_guests)
            turn.stopped_by = self._guard.stopped_before(self.conversation_id)
            captured = Captured(told=[told, *ended_since(self.rules, turn)])
            captured.add(self._hook.hear(turn))
            return captured

        self._unreported.add(capture_or_hold(self._guard, turn, capture))

    @property
    def _guard(self) -> Guard:
        assert self.recorder.guard is not None
        return self.recorder.guard

    def _turn(self, message: str, calls: list[ToolUse]) -> Turn:
        return Turn(
            user_message=message,
            tool_calls=calls,
            conversation_id=self.conversation_id,
            number=self._turns + 1,
            tools=list(self.recorder.schemas.values()),
            is_guests=self.recorder.is_guests,
        )

    @property
    def is_in_turn(self) -> bool:
        """Whether a message of the user has opened a turn."""
        return self._open_message is not None

    def compress(self, max_tokens: int) -> None:
        """Compress the conversation to `max_tokens`. The system prompt stays and does not count."""
        self.buffer = list(self._compressor(self.buffer, max_tokens, self._count_tokens))

    @property
    def buffer_tokens(self) -> int:
        """Tokens of the conversation, without the system prompt."""
        return sum(message_tokens(message, self._count_tokens) for message in self.buffer)

    # ------------------------------------------------------------ before a call

    def check(
        self, tool_name: str, arguments: Mapping[str, Any] | str, *, force: bool | None = None
    ) -> Decision:
        """Decide on a call of your own code. `arguments` may be JSON. `force`: see `Guard.before`.

        If the action is `ask` or `deny`, do not run it: give the model the reason as its result.
        """
        given = read_object(arguments)
        decision = self.recorder.check(tool_name, given, force=force)
        self._checked_calls.append(CheckedCall(key_of(tool_name, given), decision, given))
        return decision

    def ended(self, decision: Decision, output: str = "", success: bool | None = None) -> None:
        """Report how a call that `check` allowed ended, before the next call. Raises RequestError.

        `success`: None = unknown. `after_turn` uses it if the tool's message has none.
        """
        call = next((c for c in self._checked_calls if c.decision.id == decision.id), None)
        if call is None or call.has_ended:
            raise RequestError("decision: expected one from `check`, of an open call", "decision")
        call.has_ended = True
        call.success = success
        self.recorder.report_end(decision, call.given, {"output": output, "success": success})

    @property
    def decisions(self) -> list[Decision]:
        """Decisions other than a plain allow, oldest first."""
        return list(self.recorder.decisions)

    @staticmethod
    def tools(form: Literal["openai", "anthropic", "mcp"] = "openai") -> list[dict[str, Any]]:
        """Schemas of `note_demand` and `lift_demand` for a model's API. `call_tool` runs them."""
        key = {"openai": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}[form]
        found: list[dict[str, Any]] = []
        for name in NOTE_TOOLS:
            operation = OPERATIONS[name]
            assert operation.agent is not None
            schema = operation.schema(operation.agent.hidden)
            tool = {"name": name, "description": operation.agent.description, key: schema}
            found.append({"type": "function", "function": tool} if form == "openai" else tool)
        return found

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `tools`. Returns JSON for the model. Raises RequestError, StoreError."""
        if name not in NOTE_TOOLS:
            raise RequestError(f"name: expected {' or '.join(NOTE_TOOLS)}, got {name!r}", "name")
        given = read_object(arguments) | {"conversation_id": self.conversation_id}
        given["user_message"] = [message for message, _ in self._user_messages]
        given["said_at"] = [time.isoformat() for _, time in self._user_messages]
        given["speaker"] = "guest" if self.recorder.is_guests else "owner"
        if name == "note_demand":
            given["turn"] = self._turn(self._open_message or "", []).mark
            given["tools_available"] = msgspec.to_builtins(list(self.recorder.schemas.values()))
        try:
            done = self._rules_memory.perform(OPERATIONS[name], given)
            self._unreported.told.append(done.told)
            answer = {"outcome": done.outcome, "problems": msgspec.to_builtins(done.problems)}
            if done.outcome == "kept":
                answer["told"] = without_ways_out(done.told)
        except RequestError as error:
            problems = [{"field": error.field, "problem": str(error)}]
            answer = {"outcome": "refused", "problems": problems}
        return json.dumps(answer, ensure_ascii=False)

    # ------------------------------------------------------------ after a turn

    def after_turn(
        self,
        turn: Sequence[Message] = (),
        *,
        calls: Sequence[Mapping[str, Any]] | None = None,
        user_message: str | None = None,
    ) -> Captured:
        """Learn from a turn, and return what to tell the user. `turn`: its chat messages.

        `calls`: records to use instead of the calls in `turn`. Calls that the session recorded are
        merged in. All are stored at once, and judged in the background. Raises RequestError if a
        call cannot be read, and StoreError. The recorded calls, and after a StoreError what to
        tell the user, then wait for the next turn.
        """
        user_text = user_message_of(turn) or user_message or self._open_message or ""
        if user_text and self._open_message is None:
            self._add_user_message(user_text)
        records = records_of_turn(turn) if calls is None else [dict(each) for each in calls]
        results = self._read_calls(records, user_text)
        self._open_message = None
        messages = [dict(message) for message in turn]
        if user_text and not any(message.get("role") == "user" for message in messages):
            messages.insert(0, {"role": "user", "content": user_text})
        self.buffer += messages
        finished_turn = self._turn(user_text, list(map(tool_use, [*self._stored_calls, *results])))
        self._unreported.add(self.recorder.take_answers())
        learn = partial(self._hook.after_turn, finished_turn, heard=True)
        self._unreported.add(capture_or_hold(self._guard, finished_turn, learn))
        self._turns += 1
        self._stored_calls = []
        under_way = (call for call in self._checked_calls if not call.has_ended)
        self._checked_calls = deque(under_way, maxlen=MAX_CHECKED_CALLS)
        self._store(results)
        captured, self._unreported = self._unreported.without_repeats(), Captured()
        limit = self._max_buffer_tokens
        if limit is not None and self.buffer_tokens > limit:
            self.compress(limit)
        return captured

    def take_told(self) -> list[str]:
        """Remove and return the messages for the user so far; `after_turn` returns later ones."""
        self._unreported.add(self.recorder.take_answers())
        told = self._unreported.without_repeats().told
        self._unreported.told = []
        return told

    def keep_calls(self) -> None:
        """Store the calls that were recorded so far in the turn. Raises StoreError."""
        results = self._read_calls([], self._open_message or "")
        self._stored_calls += results
        self._store(results)

    def _read_calls(self, records: list[dict[str, Any]], user_text: str) -> list[ToolCallResult]:
        """Merge reported and recorded calls, each call once. Raises RequestError."""
        recorded = self.recorder.take()
        own, unmatched = [], list(recorded)
        for each in records:
            if folded_name(str(each.get("tool_name"))) in NOTE_TOOLS:
                continue
            same = next((r for r in unmatched if is_same_call(r, each)), None)
            if same is None:
                each = self._report_end(each)
            else:
                unmatched.remove(same)
            own.append({**each, **(same or {})})
        named = [
            {"context": user_text, "conversation_id": self.conversation_id, **record}
            for record in (*own, *unmatched)
        ]
        read = read_records(named, self.memory.services.clock.now())
        if read.failures:
            self.recorder.give_back(recorded)
            failure = read.failures[0]
            raise RequestError(f"turn: call {failure.index}: {failure.error}", "turn")
        return [each.call for each in read.calls]

    def _report_end(self, record: dict[str, Any]) -> dict[str, Any]:
        """Tell the guard the outcome of a call that the host ran. Returns the completed record."""
        name, given = str(record.get("tool_name")), record.get("input")
        key = key_of(name, given)
        checked = next((each for each in self._checked_calls if each.key == key), None)
        if checked is None:
            decision = plain_allow(name, self.conversation_id, self.memory.services.clock.now())
        else:
            self._checked_calls.remove(checked)
            if checked.has_ended:
                return {"success": checked.success, **record}
            decision = checked.decision
        self.recorder.report_end(decision, given, record)
        return record

    def _store(self, calls: list[ToolCallResult]) -> None:
        """Store the calls unjudged, so that nothing is lost; then have them judged."""
        self._unstored_calls += calls
        if not self._unstored_calls:
            return
        memory = self.memory
        params, _ = memory.engine.params().get("parse_tool_call_result_op", (None, {}))
        keep = getattr(params, "max_history_tool_call_cnt", DEFAULT_WINDOW)
        store = memory.services.store()
        kept = store.append_calls(memory.workspace_name, self._unstored_calls, keep)
        self._unstored_calls = []
        self._tools_to_judge.update(dict.fromkeys(kept))
        if memory.services.settings.session.judging == "background":
            self._judge()

    def _judge(self) -> Future[None]:
        names = list(self._tools_to_judge)
        self._tools_to_judge.clear()

        def work() -> None:
            try:
                if names:
                    self.memory.run("retry_evaluations", tool_names=names)
            except Exception as error:  # in a thread: `errors` has it
                self.errors.append(str(error))

        return self._judge_thread.submit(work)

    def close(self) -> None:
        """Wait until all calls are judged (see `errors`), then end the rules of this session."""
        self._store([])
        self._judge().result()
        self.rules.end_session(self.conversation_id)
        forget_session(self.rules, self.conversation_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
