"""What a long paid run will cost, said before its first request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.flow.context import Context

LONG_RUN = 20  # requests; a run of more is announced


def announce(
    context: Context,
    requests: int,
    asked: str,
    model: str,
    count_tokens: Callable[[], Iterable[int]] | None,
    interval_param: str,
) -> None:
    """A notice: how many requests, how long at this interval, how many tokens, what price, and what changes it.

    `asked`: "evaluations", "summaries". `count_tokens`: prompt tokens of each request; None where a prompt will hold
    text that only the model can write.
    """
    if requests <= LONG_RUN:
        return
    services, op = context.services, context.op
    interval = services.interval(op)
    parts = [f"{requests:,} {asked} by {model}"]
    if interval:
        parts.append(
            f"at least {_duration((requests - 1) * interval)} at one request per {interval:g} s "
            f"(op.{op.key}.params.{interval_param}=0 turns it off)"
        )
    if count_tokens is not None:
        tokens = sum(count_tokens())
        cost, currency = services.price(model.partition("/")[2], tokens, 0, 0)
        price = "no price is configured" if cost is None else f"{cost:.4g} {currency} without the replies"
        parts.append(f"{tokens:,} prompt tokens, {price}")
    parts.append("budget.max_tokens and budget.max_cost limit it")
    context.notice("; ".join(parts))


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes) + [f"{whole % 60} s"]
    return " ".join(parts)


def tokens_of(judge: Any) -> Callable[[Any, Any], int] | None:
    """How a judge counts the prompt of a call, where it has prompts at all."""
    counter: Callable[[Any, Any], int] | None = getattr(judge, "prompt_tokens", None)
    return counter
