"""A model that says what a test tells it to say, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolmem.errors import ModelError
from toolmem.flow.runner import SystemClock
from toolmem.protocols import Clock, Completion, Purpose, Tokenizer
from toolmem.readers.plain_text import counted

Reply = str | Exception


class ScriptExhaustedError(AssertionError):
    """More requests were made than the script has replies."""


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """One request as it was made, and what came of it."""

    prompt: str
    purpose: Purpose
    json_reply: bool
    started: float  # seconds on the clock's monotonic scale


class ScriptedLLM:
    """A chat model without a network; recorded, deterministic, and as dumb as possible.

    `replies`: one per request, in the order in which requests start, or a function of the prompt. A reply that is an
    exception (or an exception that the function raises) is raised. When a sequence is used up, ScriptExhaustedError.

    `fail_every`: requests n, 2n, 3n, ... raise `failure` instead (1: all of them); they use up no reply.
    `delay`: seconds that each request takes, on `clock`.
    Tokens are counted by `tokenizer`; without one, four characters (rounded up) are a token.
    A failed request is booked with no tokens and `outcome="error: <class>"`.
    """

    backend = "scripted"

    def __init__(
        self,
        replies: Sequence[Reply] | Callable[[str], Reply],
        *,
        model: str = "scripted",
        fail_every: int = 0,
        failure: Exception | None = None,
        delay: float = 0.0,
        tokenizer: Tokenizer | None = None,
        clock: Clock | None = None,
    ) -> None:
        if isinstance(replies, str):
            raise TypeError("replies: expected a list of replies or a function of the prompt, got one text")
        if fail_every < 0 or delay < 0:
            raise ValueError("fail_every and delay cannot be negative")
        self.model = model
        self.requests: list[ScriptedRequest] = []
        self.chats: list[list[dict[str, Any]]] = []  # what `chat` was sent
        self.most_in_flight = 0
        self._reply_to = replies if callable(replies) else _in_order(replies)
        self._fail_every = fail_every
        self._failure = failure or ModelError("scripted failure", temporary=True)
        self._delay = delay
        self._tokenizer = tokenizer
        self._clock: Clock = clock or SystemClock()
        self._in_flight = 0

    @classmethod
    def plausible(cls, **options: Any) -> ScriptedLLM:
        """One that answers each of toolmem's prompts in the form asked for, always alike: see `plausible_reply`."""
        return cls(plausible_reply, **options)

    @property
    def prompts(self) -> list[str]:
        """Every prompt, in the order in which requests started."""
        return [request.prompt for request in self.requests]

    @property
    def purposes(self) -> list[Purpose]:
        return [request.purpose for request in self.requests]

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """The next reply. Raises what the script says. Every request is recorded and booked, a cancelled one too."""
        started = self._clock.monotonic()
        self.requests.append(ScriptedRequest(prompt, purpose, json_reply, started))
        fails = self._fail_every > 0 and len(self.requests) % self._fail_every == 0
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            reply = self._failure if fails else self._reply_to(prompt)
            if self._delay:
                await self._clock.sleep(self._delay)
            if isinstance(reply, Exception):
                raise reply
        except (Exception, asyncio.CancelledError) as error:
            self._book(purpose, 0, 0, f"error: {type(error).__name__}", started)
            raise
        finally:
            self._in_flight -= 1
        prompt_tokens, completion_tokens = self._count(prompt), self._count(reply)
        self._book(purpose, prompt_tokens, completion_tokens, "ok", started)
        return Completion(reply, prompt_tokens, completion_tokens)

    async def chat(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The next reply as an assistant message in OpenAI's form, for agent loops.

        A reply that is a JSON object with `tool_calls` becomes a message that calls tools; any other is its text. The
        script's function gets the messages as JSON. Kept in `chats`, and booked with nobody.
        """
        self.chats.append([dict(message) for message in messages])
        reply = self._reply_to(json.dumps(list(messages), ensure_ascii=False))
        if isinstance(reply, Exception):
            raise reply
        try:
            body = json.loads(reply)
        except ValueError:
            body = None
        if isinstance(body, dict) and "tool_calls" in body:
            return {"role": "assistant", "content": None, **body}
        return {"role": "assistant", "content": reply}

    def _count(self, text: str) -> int:
        return -(-len(text) // 4) if self._tokenizer is None else self._tokenizer.count(text)

    def _book(self, purpose: Purpose, prompt_tokens: int, completion_tokens: int, outcome: str, started: float) -> None:
        purpose.book(
            time=self._clock.now(),
            backend=self.backend,
            model=self.model,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=0,
            estimated=False,
            outcome=outcome,
            seconds=self._clock.monotonic() - started,
        )


def _in_order(replies: Sequence[Reply]) -> Callable[[str], Reply]:
    left = iter(tuple(replies))

    def reply(prompt: str) -> Reply:
        for following in left:
            return following
        raise ScriptExhaustedError(
            f"the script's {len(replies)} replies are used up; the next prompt was {prompt[:200]!r}"
        )

    return reply


_LOOKS_FAILED = re.compile(
    r"traceback|exception\b|error[:\"']|not found|no such|does not exist|doesn't exist|permission denied", re.IGNORECASE
)


_NUMBERED = re.compile(r"\n<guidance\d*>\n1: ")


def plausible_reply(prompt: str) -> str:
    """A verdict where the prompt shows "```json" before any "```txt", else guidance. A function of the prompt alone.

    Where the prompt shows numbered guidance, the reply is an edit of its first line.

    The score is 0.0 where a common failure word stands behind the place where the form is shown, else 1.0: enough
    for both scores to occur, not a judgement.
    """
    marker = re.search(r"```(json|txt)", prompt)
    if marker is not None and marker.group(1) == "txt":
        calls = counted(prompt.count("\n#", marker.end()), "call")
        if _NUMBERED.search(prompt, marker.end()):  # the incremental prompt asks for edits of numbered lines
            return f"```txt\n1: Scripted guidance, {calls} later.\n```"
        return f"```txt\nScripted guidance from {calls}. Core function: as called. Best practice: repeat it.\n```"
    start = 0 if marker is None else marker.end()
    failed = _LOOKS_FAILED.search(prompt, start)
    seen = f"The output shows {failed.group()!r}." if failed else "The output shows no failure."
    words = seen.replace("\\", "/").replace('"', "'")
    score = "0.0" if failed else "1.0"
    return f'```json\n{{"summary": "A scripted verdict.", "evaluation": "{words}", "score": {score}}}\n```'
