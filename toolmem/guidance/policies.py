"""When a tool is summarized, and what the prompt holds: the policies of the summary op.

* `smart_skip`: the whole window, as soon as one of its calls is new (`skip`);
* `incremental`: the old guidance and the new calls, and the whole window every `full_every`-th time.

Under both of them a tool with nothing new is skipped, and one with fewer than `min_new_calls` new ones as well. A tool
without guidance is summarized at once: rarely called tools would otherwise never get any, and a first prompt of few
calls costs little.

Everything here is decided from the tool record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolmem.guidance.skip import Decision, Window, decide
from toolmem.guidance.writer_reply import MAX_CHARACTERS
from toolmem.models import ToolRecord
from toolmem.protocols import GuidanceWriter
from toolmem.readers.plain_text import counted

PolicyName = Literal["smart_skip", "incremental"]
Prompt = Literal["full", "incremental"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with a tool. `detail` says the reason with its figures, "" where the reason says all."""

    skip: bool
    reason: str  # see `POLICY_REASONS`, and `skip.Decision`
    stale_author: bool = False
    prompt: Prompt = "full"
    detail: str = ""


# Reasons beside those of the smart skip, in words.
POLICY_REASONS = {"too_few_new_calls": "too few new calls"}  # skipped: fewer than `min_new_calls`


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its params, as the op's params name them."""

    name: PolicyName = "smart_skip"
    min_new_calls: int = 1
    full_every: int = 1

    def plan(self, record: ToolRecord, window: Window, writer: GuidanceWriter, *, force: bool = False) -> Plan:
        """What to do with a tool."""
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
        return plan

    def _prompt(self, record: ToolRecord, decision: Decision) -> Prompt:
        """Guidance of others is written anew, and so is one that is too long to be edited."""
        guidance = record.guidance
        assert guidance is not None
        editable = guidance.text.strip() and len(guidance.text) <= MAX_CHARACTERS and not decision.stale_author
        return "incremental" if editable and guidance.edits + 1 < self.full_every else "full"

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
