"""A call that an agent of a framework wants to make: what was decided of it, and how it ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from toolmem.guard.decision import GuardDecision
from toolmem.session.tool_functions import as_text, shown_safely

INTERRUPTS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


@dataclass(slots=True)
class AgentCall:
    """A call that an agent wants to make."""

    record: dict[str, Any]
    decision: GuardDecision
    begun: float = field(default_factory=time.perf_counter)
    is_kept: bool = False
    worked: bool = False
    shown: str = ""  # what earlier calls show of its failure

    @property
    def stops(self) -> bool:
        return self.decision.stops

    @property
    def reason(self) -> str:
        """For the model, where the call is not to run."""
        return self.decision.reason

    @property
    def advice(self) -> str:
        """For the model, where the call runs though something speaks against it; "" where nothing does.

        That it failed before speaks against no call that has worked.
        """
        if self.worked and all(each.kind == "repeat" for each in self.decision.sources):
            return ""
        told = "\n".join(part for part in (self.decision.advice, self.shown) if part)
        return f"(from toolmem, not from the tool: {told})" if told else ""

    def advised(self, output: str) -> str:
        """The tool's text with the advice below it."""
        return "\n\n".join(part for part in (output, self.advice) if part)

    def ended(self, output: Any, error: BaseException | str | None) -> dict[str, Any]:
        """The record of a call that ran."""
        text = output if isinstance(output, str) else "" if output is None else as_text(output)
        if isinstance(error, INTERRUPTS):
            text = f"{type(error).__name__}: the call was interrupted"
        elif error is not None:
            text = error if isinstance(error, str) else f"{type(error).__name__}: {shown_safely(error)}"
        self.worked, taken = error is None, time.perf_counter() - self.begun
        return {**self.record, "output": text, "success": self.worked, "time_cost": taken}
