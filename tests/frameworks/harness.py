"""What the contract asks of a framework: one run of its real agent, whose model follows a script.

A module `with_<adapter>` has

    ways         of a run: sync, async, stream
    takes_notes  whether the model is offered the note tools
    tells_error  what the model reads of the tool that raises; "" where that ends the run
    run(memory, steps, *, say, way, conversation, **options) -> Seen

A step is the calls that the model asks for at once. Each run is one message of the user, to an
agent made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Seen:
    """What the model saw, and what left the run."""

    results: list[str] = field(default_factory=list)  # of its calls, in the order asked
    prompts: list[str] = field(default_factory=list)  # system prompts, one for each request
    raised: BaseException | None = None
