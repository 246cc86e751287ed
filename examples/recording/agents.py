"""Scripted agents: how they go about a task, what they get wrong, and how they repair it.

A scenario is a generator: it yields steps and is sent the answers, so that an agent decides its next step by
what the tool really said. All decisions come from the conversation's own random numbers.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from examples.recording.tools.tool import Answer
from examples.recording.world import World

_T = TypeVar("_T")
# Trouble that may be over after a while; a conflict or an empty shelf will not.
_PASSING_FAULTS = frozenset({"database_locked", "rate_limit", "server_error", "connection_dropped"})


@dataclass(frozen=True, slots=True)
class Agent:
    """A character. The shares are probabilities from 0 to 1."""

    name: str
    carelessness: float  # a task begins with a mistake
    stubbornness: float  # a failed call is sent again word for word
    impatience: float  # the task is given up after a failure
    language: Literal["en", "zh"]  # of its users
    utc_offset: int  # hours; its times are recorded in this zone


AGENTS = (
    Agent("atlas", carelessness=0.22, stubbornness=0.05, impatience=0.03, language="en", utc_offset=0),
    Agent("bram", carelessness=0.42, stubbornness=0.25, impatience=0.10, language="en", utc_offset=1),
    Agent("cleo", carelessness=0.38, stubbornness=0.12, impatience=0.06, language="en", utc_offset=0),
    Agent("xiaoyu", carelessness=0.35, stubbornness=0.10, impatience=0.05, language="zh", utc_offset=8),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One call that an agent makes. `failed` and `useful` correct the truth where only the script can know it."""

    tool: str
    arguments: dict[str, Any]
    mistake: str | None = None
    failed: bool | None = None
    useful: bool | None = None
    wait: float = 0.0  # scripted seconds beyond the time that the agent needs to think


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake that an agent may make in place of the right call, and what it looks up before the repair."""

    mistake: str
    arguments: dict[str, Any]
    detour: tuple[Step, ...] = ()
    weight: float = 1.0
    failed: bool | None = None
    useful: bool | None = None


Attempt = Generator[Step, Answer, Answer]  # ends with the last answer
Story = Generator[Step, Answer, None]


@dataclass
class Talk:
    """One conversation: its agent, its random numbers, what the user asked, what the agent has learned in it."""

    agent: Agent
    rng: random.Random
    world: World
    context: str = ""
    hurried: bool = False  # calls follow each other within seconds
    learned: set[tuple[str, str]] = field(default_factory=set)  # (tool, mistake)

    def ask(self, english: str, chinese: str) -> None:
        """The user says what is wanted, in the language of the agent's users."""
        self.context = chinese if self.agent.language == "zh" else english

    def pick(self, choices: Sequence[_T]) -> _T:
        return self.rng.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def attempt(self, tool: str, right: dict[str, Any], slips: Sequence[Slip] = (), *, risk: float = 1.0) -> Attempt:
        """Do one thing with one tool: perhaps with a slip first, perhaps again word for word, then repaired.

        `risk` scales the agent's carelessness. A mistake that was made once in this conversation is not made again.
        """
        open_slips = [slip for slip in slips if (tool, slip.mistake) not in self.learned]
        rounds = 0
        while open_slips and rounds < 2 and self.chance(self.agent.carelessness * risk * (0.4 if rounds else 1.0)):
            rounds += 1
            slip = self.rng.choices(open_slips, weights=[slip.weight for slip in open_slips])[0]
            open_slips.remove(slip)
            self.learned.add((tool, slip.mistake))
            answer = yield from self._slip(tool, slip)
            if answer.failed and self.chance(self.agent.impatience):
                return answer
        return (yield from self.insist(Step(tool, right)))

    def _slip(self, tool: str, slip: Slip) -> Attempt:
        step = Step(tool, slip.arguments, slip.mistake, slip.failed, slip.useful)
        answer = yield step
        repeats = 0
        while answer.failed and repeats < 2 and self.chance(self.agent.stubbornness):
            repeats += 1
            answer = yield step
        for look in slip.detour:  # noqa: UP028 (a tuple cannot be sent the answers)
            yield look
        return answer

    def insist(self, step: Step, *, patience: float = 70.0) -> Attempt:
        """Make a right call; where the surroundings fail, perhaps at once again, then after `patience` seconds."""
        answer = yield step
        if answer.fault not in _PASSING_FAULTS:
            return answer
        if self.chance(0.15 + self.agent.stubbornness):
            answer = yield step
        tries = 0
        while answer.fault in _PASSING_FAULTS and tries < 2 and not self.chance(self.agent.impatience * 3):
            tries += 1
            answer = yield replace(step, wait=patience)
        return answer
