"""When a tool is summarized, and what the prompt holds: the policies of the summary op.

* `smart_skip`: the whole window, as soon as one of its calls is new (`skip`);
* `incremental`: the old guidance and the new calls, and the whole window every `full_every`-th time;
* `on_change`: the whole window, when the tool's statistics have changed (`on_change`).

Under each of them a tool with nothing new is skipped, and one with fewer than `min_new_calls` new ones as well. A tool
without guidance is summarized at once: rarely called tools would otherwise never get any, and a first prompt of few
calls costs little.

Everything here is decided from the tool record, but for the comparison of `on_change`, which reads the newest calls of
a tool that has new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolmem.guidance.counted.on_change import change_in_rate, change_in_traits
from toolmem.guidance.skip import Decision, Window, decide
from toolmem.guidance.writer_reply import MAX_CHARACTERS
from toolmem.models import ToolRecord
from toolmem.protocols import GuidanceWriter
from toolmem.readers.plain_text import counted
from toolmem.stored import StoredMemory

PolicyName = Literal["smart_skip", "incremental", "on_change"]
Prompt = Literal["full", "incremental"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with a tool. `detail` says the reason with its figures, "" where the reason says all."""

    skip: bool
    reason: str  # see `POLICY_REASONS`, and `skip.Decision`
    stale_author: bool = False
    prompt: Prompt = "full"
    detail: str = ""
    look: bool = False  # undecided: the newest calls have to be compared first
    changed: bool = False  # summarized because of a change


# Reasons beside those of the smart skip, in words.
POLICY_REASONS = {
    "too_few_new_calls": "too few new calls",  # skipped: fewer than `min_new_calls`
    "not_changed": "no change",  # skipped by on_change: no comparison found a change
    "changed": "changed",  # on_change: success rate, error classes or parameters
    "window_filled": "window filled",  # on_change: the guidance knew less than a window of calls, now there is one
    "refresh_due": "refresh due",  # on_change: `refresh_after` new calls
    "no_baseline": "nothing to compare with",  # on_change: another policy wrote the guidance, or another store
}


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its params, as the op's params name them."""

    name: PolicyName = "smart_skip"
    min_new_calls: int = 1
    full_every: int = 1
    false_alarm_rate: float = 0.2
    refresh_after: int = 1

    def plan(
        self, record: ToolRecord, window: Window, writer: GuidanceWriter, *, recent: int, force: bool = False
    ) -> Plan:
        """What to do, as far as the record shows."""
        decision = decide(
            record, window, author=writer.author, prompt_version=writer.prompt_version, also=(writer.edit_version,),
            force=force,
        )  # fmt: skip
        plan = Plan(decision.skip, decision.reason, decision.stale_author)
        if decision.reason != "new_calls" or record.guidance is None:
            return plan
        if len(window.new) < self.min_new_calls:
            detail = f"{len(window.new)} of {counted(self.min_new_calls, 'new call')}"
            return replace(plan, skip=True, reason="too_few_new_calls", detail=detail)
        if self.name == "incremental":
            return replace(plan, prompt=self._prompt(record, decision))
        if self.name == "on_change":
            return self._on_change(record, window, plan, recent)
        return plan

    def _prompt(self, record: ToolRecord, decision: Decision) -> Prompt:
        """Guidance of others is written anew, and so is one that is too long to be edited."""
        guidance = record.guidance
        assert guidance is not None
        editable = guidance.text.strip() and len(guidance.text) <= MAX_CHARACTERS and not decision.stale_author
        return "incremental" if editable and guidance.edits + 1 < self.full_every else "full"

    def _on_change(self, record: ToolRecord, window: Window, plan: Plan, recent: int) -> Plan:
        guidance = record.guidance
        assert guidance is not None
        if guidance.baseline is None or guidance.baseline.seq > record.last_seq:
            return replace(plan, reason="no_baseline")
        age = record.last_seq - guidance.baseline.seq
        if age >= self.refresh_after:
            return replace(plan, reason="refresh_due", detail=f"{counted(age, 'call')} since the last summary")
        if guidance.statistics.calls < recent <= len(window.seqs):
            return replace(plan, reason="window_filled", detail=f"{counted(guidance.statistics.calls, 'call')} before")
        return replace(plan, look=True)

    def compared(self, plan: Plan, stored: StoredMemory) -> Plan:
        """What to do after a look at the newest kept calls."""
        record, rate, life = stored.record, self.false_alarm_rate, self.refresh_after
        baseline = None if record.guidance is None else record.guidance.baseline
        change = None
        if baseline is not None:
            change = change_in_rate(record, baseline, stored.figures, rate=rate, life=life) or change_in_traits(
                baseline, stored.calls, last_seq=record.last_seq, rate=rate, life=life
            )
        if change is None:
            return replace(plan, skip=True, reason="not_changed", look=False)
        return replace(plan, reason="changed", detail=str(change), look=False, changed=True)

    def saved_tokens(self, record: ToolRecord) -> int:
        """Prompt tokens that a skip of this tool did not send.

        Where the whole window would have been read, that window's, as its last summary counted them. An incremental
        summary would have sent the instructions, the old guidance and the new calls; the calls are sent later all the
        same, so that only the rest is saved.
        """
        guidance = record.guidance
        if guidance is None:
            return 0
        return guidance.update_tokens if self.name == "incremental" else guidance.prompt_tokens
