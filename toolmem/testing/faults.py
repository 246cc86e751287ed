"""Ways in which a model's server fails, by name, and the requests that they apply to."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Literal

from msgspec import Struct


class Behaviour(Struct, frozen=True, kw_only=True):
    """How a request is answered. The default: a plausible reply, at once, with usage."""

    status: int = 200
    error: tuple[str, str] | None = None  # code and message of an error body
    text: str | None = None  # of the reply; None: from the server's `reply`
    finish_reason: str = "stop"
    body: bytes | None = None  # sent unchanged
    retry_after: str = ""  # the header
    has_usage: bool = True
    cut: Literal["", "before", "within"] = ""  # the connection ends before or in the answer
    hangs: bool = False  # no answer comes
    refuses: str = ""  # a parameter: requests with it get an error 400


FAULTS: dict[str, Behaviour] = {
    # Another attempt may succeed.
    "server_error": Behaviour(status=500, error=("InternalError", "An internal error occurred")),
    "unavailable": Behaviour(status=503, error=("ServiceUnavailable", "The service is busy")),
    "bad_gateway": Behaviour(status=502, body=b"<html><h1>502 Bad Gateway</h1></html>"),
    "throttled": Behaviour(status=429, error=("Throttling.RateQuota", "Rate limit exceeded")),
    "retry_after": Behaviour(
        status=429, error=("Throttling.RateQuota", "Rate limit exceeded"), retry_after="2"
    ),
    "error_in_200": Behaviour(error=("InternalError.Algo", "An error in place of a reply")),
    "broken_json": Behaviour(body=b'{"output": {"choices": [{"message": {"content": "half a re'),
    "garbage": Behaviour(body=b"\x00\xff\xfe<!doctype nonsense>"),
    "no_body": Behaviour(body=b""),
    "empty": Behaviour(text=""),
    "cut": Behaviour(cut="before"),
    "cut_within": Behaviour(cut="within"),
    "hang": Behaviour(hangs=True),
    # The model's reply cannot be used.
    "wrong_type": Behaviour(text='{"summary": "s", "evaluation": "e", "score": "very good"}'),
    "broken_reply": Behaviour(text='```json\n{"summary": "it ran", "evaluation": "fi'),
    "endless_thought": Behaviour(text="<think>Let me see. " + "And then? " * 200),
    "truncated": Behaviour(text='```json\n{"summary": "cut', finish_reason="length"),
    "filtered_reply": Behaviour(finish_reason="content_filter"),
    "no_usage": Behaviour(has_usage=False),
    # Every attempt fails.
    "unauthorized": Behaviour(status=401, error=("InvalidApiKey", "Invalid API-key provided.")),
    "arrears": Behaviour(status=400, error=("Arrearage", "Your account is in arrears.")),
    "unknown_model": Behaviour(status=404, error=("ModelNotFound", "There is no such model.")),
    "bad_request": Behaviour(status=400, error=("InvalidParameter", "A parameter is invalid.")),
    "content_filter": Behaviour(
        status=400, error=("DataInspectionFailed", "The input may be inappropriate.")
    ),
    "no_temperature": Behaviour(refuses="temperature"),
    "no_json_mode": Behaviour(refuses="response_format"),
    "no_max_tokens": Behaviour(refuses="max_tokens"),
}


class Fault(Struct, frozen=True):
    """A behaviour of FAULTS, and the requests that it applies to; without a condition, all.

    `every`: requests n, 2n, 3n, ... `share`: this share of all prompts, always the same ones.
    """

    name: str
    every: int = 0
    share: float = 0.0
    matching: str = ""  # a regular expression to find in the prompt
    times: int = 0  # how often it applies at most; 0: no limit

    def applies(self, number: int, prompt: str, applied: int) -> bool:
        """Whether the fault applies to request `number` (from 1). `applied`: how often it did."""
        digest = blake2b(prompt.encode(errors="replace"), digest_size=8).digest()
        return (
            (not self.times or applied < self.times)
            and (not self.every or number % self.every == 0)
            and (not self.matching or re.search(self.matching, prompt) is not None)
            and (not self.share or int.from_bytes(digest) / 2**64 < self.share)
        )
