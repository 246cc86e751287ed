"""Summarizing one tool: deciding by the policy, asking the writer, storing what it wrote."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from toolmem.errors import Conflict, ModelError, ReplyUnreadable, StoreError
from toolmem.flow.op import Context
from toolmem.guidance.guests import for_others
from toolmem.guidance.in_between import Trail, repeated_pairs, trail_of, with_calls_between
from toolmem.guidance.policies import Plan, Policy
from toolmem.guidance.proof import Talk, begins, with_proof
from toolmem.guidance.skip import Window, count_dropped, window_of
from toolmem.models import Guidance, ToolCallResult, ToolRecord
from toolmem.ops.judging import answer_of
from toolmem.protocols import Embedder, GuidanceWriter, MemoryStore
from toolmem.stored import Document

log = logging.getLogger("toolmem.ops")

_ATTEMPTS = 3  # how often a tool whose guidance somebody else writes meanwhile is decided anew
MOST_OF_TALK = 200  # calls of the tool that are read of one conversation, for the proof of its lines


@dataclass(slots=True)
class Outcome:
    """What became of one tool."""

    tool_name: str
    action: str  # summarized, skipped, failed, not_found
    reason: str = ""
    new_calls: int = 0
    not_analyzed: int = 0
    dropped: int = 0  # calls since the guidance was written that are kept no more
    stale_author: bool = False
    prompt_tokens: int = 0  # of the window's prompt; where the tool was skipped, of what was not sent
    error: str = ""
    detail: str = ""  # the reason with its figures
    prompt: str = ""  # of a tool that was summarized: "full", "incremental", or "fallback" (incremental, then full)


@dataclass
class Summarizing:
    """The adapters, params and outcomes of one execution."""

    context: Context
    store: MemoryStore
    writer: GuidanceWriter
    embedder: Embedder
    policy: Policy
    recent: int
    force: bool
    since: datetime | None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    without_vector: list[str] = field(default_factory=list)  # tools whose new guidance only the text leg finds
    stopped: ModelError | None = None
    trail: Trail | None = None  # the calls of all tools, read where a summary asks for them

    # -- deciding

    async def decide(self, record: ToolRecord) -> tuple[Window, Plan]:
        """What to do with a tool. Reads calls only where `data_from` picks them."""
        window = await self._window(record)
        return window, self.policy.plan(record, window, self.writer, force=self.force)

    async def _window(self, record: ToolRecord) -> Window:
        if self.since is None:
            return window_of(record, self.recent)
        read = await self.store.memories(self.context.workspace, [record.tool_name], calls=True)
        calls = read[0].calls if read else ()  # of a tool that is gone none, so that what follows says so
        eligible = [call.seq for call in calls if call.seq is not None and call.create_time >= self.since]
        return window_of(record, self.recent, eligible=eligible)

    def outcome(self, record: ToolRecord, window: Window, plan: Plan, action: str) -> Outcome:
        """What is known of a tool before anything is written."""
        return Outcome(
            record.tool_name,
            action,
            plan.reason,
            len(window.new),
            window.not_analyzed,
            count_dropped(record),
            plan.stale_author,
            detail=plan.detail,
        )

    def skipped(self, record: ToolRecord, window: Window, plan: Plan) -> Outcome:
        if plan.reason == "nothing_judged":
            told = "no call of this tool has a verdict to summarize"
            return Outcome(record.tool_name, "failed", plan.reason, error=told)
        done = self.outcome(record, window, plan, "skipped")
        done.prompt_tokens = self.policy.saved_tokens(record)
        return done

    # -- writing

    async def summarize(self, record: ToolRecord, window: Window, plan: Plan) -> Outcome:
        """Write the guidance of one tool as planned; decided anew where somebody else was faster."""
        tool = record.tool_name
        for attempt in range(_ATTEMPTS):
            if attempt:
                window, plan = await self.decide(record)
            if plan.skip:
                return self.skipped(record, window, plan)
            read = await self.store.memories(self.context.workspace, [tool], calls=True, seqs={tool: window.seqs})
            if not read:
                return Outcome(tool, "not_found")
            done = self.outcome(record, window, plan, "failed")
            try:
                calls = await self._told_what_came_between(read[0].calls, window)
                told = [for_others(call) for call in calls]
                proved = record.model_copy(update={"guidance": await self._proved(record, calls)})
                guidance = await self._write(proved, window, plan, told, done)
            except ModelError as error:
                if error.fatal:
                    self.stopped = error
                done.error = str(error)
                return done
            if await self._put(record, guidance):
                done.action, done.prompt_tokens = "summarized", guidance.prompt_tokens
                return done
            again = await self.store.records(self.context.workspace, [tool])
            if not again:
                return Outcome(tool, "not_found")
            record = again[0]
        return Outcome(tool, "failed", error=f"others changed this tool {_ATTEMPTS} times meanwhile; run it again")

    async def _told_what_came_between(
        self, calls: Sequence[ToolCallResult], window: Window
    ) -> Sequence[ToolCallResult]:
        """The calls of other tools are read once, and only where a call that failed was made again as it was."""
        pairs = repeated_pairs(calls, window.new)
        if not pairs:
            return calls
        if self.trail is None:
            every = await self.store.memories(self.context.workspace, None, calls=True)
            self.trail = trail_of(call for memory in every for call in memory.calls)
        return with_calls_between(calls, pairs, self.trail)

    async def _proved(self, record: ToolRecord, calls: Sequence[ToolCallResult]) -> Guidance | None:
        """The guidance that is there with what the conversations of `calls` show of its lines.

        They are read from the call log; nothing is counted where the store has none, or no guidance is handed out.
        """
        old, given = record.guidance, self.context.services.settings.guidance_tokens
        written = begins(old)
        if old is None or written is None or not given:
            return old
        names = dict.fromkeys(call.conversation_id for call in calls if call.create_time > written)
        log_of = partial(self.store.call_log, self.context.workspace)
        talks: list[Talk] = []
        try:
            for name in filter(None, names):
                first = await log_of(conversation=name, limit=1)
                made = await log_of(conversation=name, tool=record.tool_name, limit=MOST_OF_TALK)
                if first and made:
                    talks.append(Talk(first[0].call.create_time, [for_others(each.call) for each in made]))
        except StoreError as error:
            log.info("what the lines of a card were good for is not counted: %s", error)
            return old
        return with_proof(old, record.tool_name, talks)

    async def _write(
        self, record: ToolRecord, window: Window, plan: Plan, calls: Sequence[ToolCallResult], done: Outcome
    ) -> Guidance:
        """The guidance; `done` learns which prompt it came from. Raises ModelError."""
        tool, old = record.tool_name, record.guidance
        purpose, who = self.context.purpose(tool), f"the writer {self.writer.author}"
        done.prompt = plan.prompt
        if plan.prompt == "incremental" and old is not None:
            new = [call.seq for call in calls if call.seq in set(window.new) and call.seq is not None]
            try:
                return await answer_of(who, Guidance, lambda: self.writer.edit(tool, calls, new, old, purpose))
            except ReplyUnreadable as error:
                log.info("an incremental summary of a tool is written in full instead: %s", error)
                self.context.note(f"{tool}: the edits of an incremental summary were of no use ({error}); full summary")
                done.prompt, done.detail = "fallback", str(error)
        guidance = await answer_of(who, Guidance, lambda: self.writer.write(tool, calls, old, purpose))
        return guidance.model_copy(update={"covered": [call.seq for call in calls if call.seq is not None]})

    async def _put(self, record: ToolRecord, guidance: Guidance) -> bool:
        """Store it; False where somebody else wrote first, or the tool is gone."""
        tool = record.tool_name
        document = await self._document(tool, guidance.text)
        try:
            await self.store.put_guidance(
                self.context.workspace,
                tool,
                guidance.model_copy(update={"created_at": self.context.services.clock.now()}),
                document=document,
                guidance_version=record.guidance_version,
            )
        except Conflict:
            return False
        return True

    async def _document(self, tool: str, guidance: str) -> Document:
        """The guidance's searchable side. Guidance that was paid for is kept even where it cannot be embedded."""
        text = f"{tool}\n{guidance}"
        try:
            return Document(text, (await self.embedder.embed([text]))[0])
        except ModelError as error:
            log.warning("the guidance of a tool is stored without its vector: %s", error)
            self.without_vector.append(tool)
            return Document(text)
