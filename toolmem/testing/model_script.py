"""What a `ModelServer` does with each request: behaviours, the rules that pick them, and a script of rules."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolmem.testing.scripted_llm import plausible_reply

Kind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What happens to one request. As it stands: a plausible reply, at once, with usage."""

    name: str = "ok"
    status: int = 200
    delay: float = 0.0  # seconds before the answer, beside the script's latency
    text: str | None = None  # of the reply; None: the script's
    finish_reason: str = "stop"
    error: tuple[str, str] | None = None  # code and message of an error body, whatever the status
    retry_after: float | str | None = None  # seconds, or a date
    headers: tuple[tuple[str, str], ...] = ()  # further ones
    body: bytes | None = None  # sent as it is, in place of JSON
    usage: bool = True  # False: the reply does not say what it cost
    cut: Literal["", "before", "within"] = ""  # the connection is reset before the answer, or in the middle of it
    hang: bool = False  # no answer ever comes

    def after(self, seconds: float) -> Behaviour:
        """The same, so much later."""
        return replace(self, delay=seconds)


OK = Behaviour()

# The ways to fail, by name: those that may pass, then those that cannot.
FAULTS: dict[str, Behaviour] = {
    fault.name: fault
    for fault in (
        Behaviour(
            "server_error", 500, error=("InternalError", "An internal error has occurred, please try again later")
        ),
        Behaviour("unavailable", 503, error=("ServiceUnavailable", "The service is busy")),
        Behaviour("bad_gateway", 502, body=b"<html><body><h1>502 Bad Gateway</h1></body></html>"),
        Behaviour("throttled", 429, error=("Throttling.RateQuota", "Requests rate limit exceeded")),
        Behaviour("retry_after", 429, error=("Throttling.RateQuota", "Requests rate limit exceeded"), retry_after=0.2),
        Behaviour("garbage", body=b"\x00\xff\xfe<!doctype nonsense>"),
        Behaviour("broken_json", body=b'{"output": {"choices": [{"message": {"content": "half a rep'),
        Behaviour("error_in_200", error=("InternalError.Algo", "An error in place of a reply")),
        Behaviour("no_body", body=b""),
        Behaviour("empty", text=""),
        Behaviour("truncated", text='```json\n{"summary": "cut in the mid', finish_reason="length"),
        Behaviour("cut", cut="before"),
        Behaviour("cut_within", cut="within"),
        Behaviour("hang", hang=True),
        Behaviour("unauthorized", 401, error=("InvalidApiKey", "Invalid API-key provided.")),
        Behaviour("forbidden", 403, error=("AccessDenied", "Access denied.")),
        Behaviour("arrears", 400, error=("Arrearage", "Access denied, your account is not in good standing.")),
        Behaviour("unknown_model", 404, error=("ModelNotFound", "The model does not exist.")),
        Behaviour("bad_request", 400, error=("InvalidParameter", "A parameter is invalid.")),
        Behaviour(
            "content_filter", 400, error=("DataInspectionFailed", "Input data may contain inappropriate content.")
        ),
        Behaviour("filtered_reply", finish_reason="content_filter"),
    )
}
PASSING = tuple(FAULTS)[: tuple(FAULTS).index("unauthorized")]  # names of those that another attempt may survive


@dataclass(frozen=True, slots=True)
class Rule:
    """When a behaviour applies; conditions that are given must all hold. Requests are numbered from 1, per rule.

    `every`: requests n, 2n, 3n, ..., or, with a `remainder` r, requests r, n + r, 2n + r, ...; `nth`: these numbers;
    `probability`: drawn anew for each request; `share`: of all prompts, those that a hash picks, each time they come
    (lasting failures); `matching`: a regular expression that is found in the prompt; `times`: at most so often.
    """

    behaviour: Behaviour
    every: int = 0
    remainder: int = 0
    nth: tuple[int, ...] = ()
    probability: float | None = None
    share: float | None = None
    matching: str | None = None
    times: int | None = None
    kind: Kind | None = None  # only chat requests, or only embeddings; the others are not counted


class Script:
    """Rules in order, the first one that applies decides; where none does, a plausible reply.

    `latency`: seconds that every answer takes. `reply`: the text for a prompt. `key`: the only key that is let in
    (None: any; "": none may be sent). `dimension`: of embeddings, where the request does not say. `seed`: of what is
    drawn by chance.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        latency: float = 0.0,
        reply: Callable[[str], str] = plausible_reply,
        key: str | None = None,
        dimension: int = 1024,
        seed: int = 0,
    ) -> None:
        self.rules = tuple(rules)
        self.latency = latency
        self.reply = reply
        self.key = key
        self.dimension = dimension
        self._seed = seed
        self._random = random.Random(seed)
        self._seen = [0] * len(self.rules)
        self._applied = [0] * len(self.rules)

    @classmethod
    def failing(
        cls, fault: str | Behaviour, *, every: int = 0, share: float | None = None, latency: float = 0.0
    ) -> Script:
        """A script of one fault, by its name in FAULTS or as a behaviour.

        It comes at every n-th request, for a share of all prompts, or, where neither is given, always.
        """
        behaviour = fault if isinstance(fault, Behaviour) else FAULTS[fault]
        return cls([Rule(behaviour, every=every, share=share)], latency=latency)

    def behaviour(self, kind: Kind, prompt: str) -> Behaviour:
        """For the next request; called once for each, in the order in which they came."""
        chosen: Behaviour | None = None
        for position, rule in enumerate(self.rules):
            if rule.kind is not None and rule.kind != kind:
                continue
            self._seen[position] += 1
            if chosen is None and self._applies(position, rule, prompt):
                self._applied[position] += 1
                chosen = rule.behaviour
        return chosen or OK

    def _applies(self, position: int, rule: Rule, prompt: str) -> bool:
        number = self._seen[position]
        return (
            (rule.times is None or self._applied[position] < rule.times)
            and (not rule.every or number % rule.every == rule.remainder)
            and (not rule.nth or number in rule.nth)
            and (rule.matching is None or re.search(rule.matching, prompt) is not None)
            and (rule.share is None or self._hashed(prompt) < rule.share)
            and (rule.probability is None or self._random.random() < rule.probability)
        )

    def _hashed(self, prompt: str) -> float:
        """A number in [0, 1) that belongs to the prompt and the seed."""
        digest = hashlib.blake2b(f"{self._seed}\0{prompt}".encode(errors="replace"), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64
