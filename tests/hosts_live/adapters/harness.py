"""What a framework's harness answers to the contract: one run of its real agent with a model that follows a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Step = Sequence[tuple[str, Mapping[str, Any]]]  # the calls that the model asks for at once


@dataclass
class Seen:
    """What the model saw, and what left the run."""

    results: list[str] = field(default_factory=list)  # of its calls, in the order in which they were asked for
    prompts: list[str] = field(default_factory=list)  # system prompts, one for each time it was asked
    raised: BaseException | None = None  # the framework let a tool's exception out of the run


class Harness(Protocol):
    """`name` is the adapter's module. Each `run` is one message of the user, to an agent made anew over `memory`."""

    name: str
    ways: tuple[str, ...]  # of a run: "sync", "async", "stream"
    shows_prompt: bool  # the adapter puts rules into the system prompt
    hears_user: bool  # the adapter sees what the user says
    takes_notes: bool  # the adapter gives the model `note_demand` and `lift_demand`
    tells_error: str  # what the model reads of the contract's tool that raises; "" where that ends the run

    def run(
        self,
        memory: Any,
        steps: Sequence[Step],
        *,
        say: str = "go on",
        way: str = "",
        conversation: str | None = "c1",
        **options: Any,
    ) -> Seen: ...
