"""The runs of the cost benchmark: what policies cost and what they buy on recordings, and what they cost on many tools.

Every figure comes from calls that were replayed one by one through the real op and the real store (in memory), with the
prompts counted by the tokenizer and not sent (`toolmem.research.backtest.replay`). Nothing is simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from cost_streams import Pattern, recorded, spread

from toolmem import ToolMemApp
from toolmem.judge.llm_judge import LLMJudge, judge_prompts
from toolmem.models import ToolCallResult
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest.baselines import counting_only
from toolmem.research.backtest.coverage import Coverage, replayed_coverage
from toolmem.research.backtest.opportunities import opportunities
from toolmem.research.backtest.paired import compare
from toolmem.research.backtest.replay import Cadence, Replay, replay
from toolmem.research.report.charges import CostReport, cost_report, cost_sums
from toolmem.research.report.single_pass import LineCounter
from toolmem.research.report.staleness import staleness, waiting

BUDGET = 500  # tokens of guidance per tool
MARGIN = 0.02
WINDOW = 30  # calls that a summary reads, and that the baseline counts
MODEL = "qwen-plus"


@dataclass(frozen=True)
class Way:
    """A policy as it is run."""

    name: str
    params: Mapping[str, Any]
    cadence: Cadence = "call"


ALWAYS_FRESH = "always fresh"
SMART_SKIP_10 = "smart skip, 10 new calls"
WAYS = (
    Way(ALWAYS_FRESH, {}),
    Way("smart skip, each conversation", {}, "conversation"),
    Way(SMART_SKIP_10, {"min_new_calls": 10}),
    Way("incremental, 10 new calls", {"policy": "incremental", "min_new_calls": 10}),
)
BASELINES = ("no guidance", "counting only")


@cache
def tokenizer() -> QwenTokenizer:
    return QwenTokenizer()


@cache
def app() -> ToolMemApp:
    return ToolMemApp()


def bill_of(run: Replay) -> CostReport:
    return cost_report([], run.reports, prices=app().services.price)


NOTHING = SimpleNamespace(
    **dict.fromkeys(("requests", "input_tokens", "cached_tokens", "output_tokens"), 0),
    **dict.fromkeys(("cost", "uncached_cost", "batch_cost")),
    currency="",
    **dict.fromkeys(("avoided_requests", "avoided_input_tokens"), 0),
)


def spent(run: Replay) -> Any:
    sums = cost_sums(bill_of(run), [])
    return sums[0] if sums else NOTHING


def bound_of(calls: Sequence[ToolCallResult]) -> int:
    """Input tokens of a single pass."""
    return sum(line.bound for line in LineCounter(tokenizer()).of_calls(calls))


def most_waiting(run: Replay) -> int:
    """Calls of one tool that its guidance did not hold when a summary run looked, at most; dropped ones count."""
    return max((each.most for each in staleness(waiting(run.reports))), default=0)


def share_read(run: Replay) -> float:
    """Share of the calls that a summary read at some time."""
    return sum(each.read for each in staleness(waiting(run.reports))) / len(run.calls)


# ---------------------------------------------------------------- what it buys


def recording(dataset: str, tool: str, limit: int) -> dict[str, Any]:
    """All ways and baselines on the first `limit` calls of a recording (of one tool, or of all of them)."""
    calls = recorded(dataset, tool=tool, limit=limit)
    bound = bound_of(calls)
    runs = {way.name: asyncio.run(replay(calls, way.params, cadence=way.cadence, model=MODEL)) for way in WAYS}
    covered = {name: replayed_coverage(run.in_force, calls, BUDGET) for name, run in runs.items()}
    covered |= {name: _baseline(name, calls) for name in BASELINES}
    rows = [_row(name, runs.get(name), covered, bound, len(calls)) for name in (*BASELINES, *runs)]
    judged = _judging(calls)
    return {
        "recording": dataset,
        "tool": tool,
        "calls": len(calls),
        "tools": len({call.tool_name for call in calls}),
        "failures": sum(call.failed is True for call in calls),
        "repaired": len(opportunities(calls)),
        "bound_tokens": bound,
        "bound_cost": app().services.price(MODEL, bound)[0],
        "judging": judged,
        "policies": rows,
    }


def _baseline(name: str, calls: Sequence[ToolCallResult]) -> Coverage:
    """Counting costs no request, so its text is always fresh: of the newest calls of the tool, up to the failure."""
    texts: list[str | None] = [None] * len(calls)
    if name == "counting only":
        for one in opportunities(calls):
            so_far = [call for call in calls[: one.position + 1] if call.tool_name == one.tool_name]
            texts[one.position] = counting_only(so_far[-WINDOW:])
    return replayed_coverage(texts, calls, BUDGET)


def _row(name: str, run: Replay | None, covered: Mapping[str, Coverage], bound: int, calls: int) -> dict[str, Any]:
    coverage = covered[name]
    money = NOTHING if run is None else spent(run)
    interval = coverage.interval()
    return {
        "policy": name,
        "summaries": money.requests,
        "input_tokens": money.input_tokens,
        "cached_tokens": money.cached_tokens,
        "output_tokens": money.output_tokens,
        "times_single_pass": money.input_tokens / bound if bound else None,
        "cost": money.cost or 0.0,
        "uncached_cost": money.uncached_cost or 0.0,
        "batch_cost": money.batch_cost or 0.0,
        "cost_per_1000_calls": 1000 * (money.cost or 0.0) / calls,
        "currency": money.currency,
        "avoided_requests": money.avoided_requests,
        "avoided_input_tokens": money.avoided_input_tokens,
        "most_waiting": None if run is None else most_waiting(run),
        "share_read": None if run is None else share_read(run),
        "coverage": coverage.share,
        "low": interval.low,
        "high": interval.high,
        "than_always_fresh": _beside(covered[ALWAYS_FRESH], coverage),
        "than_smart_skip_10": _beside(covered[SMART_SKIP_10], coverage),
    }


def _beside(reference: Coverage, coverage: Coverage) -> dict[str, Any] | None:
    """The paired difference on the same repaired failures; None where there was none."""
    if not coverage.n:
        return None
    found = compare(reference, coverage, MARGIN)
    return {"difference": found.difference, "low": found.low, "high": found.high, "verdict": found.verdict}


def _judging(calls: Sequence[ToolCallResult]) -> dict[str, Any]:
    """Evaluation prompts of all calls; identical ones are asked once. The same under every policy."""
    judge = LLMJudge(_Nobody(), judge_prompts(), tokenizer())
    prompts = dict.fromkeys(judge.prompt(call, None) for call in calls)
    tokens = sum(map(tokenizer().count, prompts))
    replies = 90 * len(prompts)
    cost, currency = app().services.price(MODEL, tokens, replies)
    return {
        "requests": len(prompts),
        "input_tokens": tokens,
        "output_tokens": replies,
        "cost": cost,
        "currency": currency,
    }


class _Nobody:
    """A model that is never asked: only prompts are built."""

    backend = "dry_run"
    model = MODEL

    async def complete(self, prompt: str, purpose: Any, *, json_reply: bool = False) -> Any:
        raise AssertionError("nothing is asked here")


# ---------------------------------------------------------------- many tools


def cell(dataset: str, tools: int, pattern: Pattern, limit: int) -> list[dict[str, Any]]:
    """What each way costs where a recording's calls are those of `tools` tools. Conversations are not kept."""
    calls = spread(_cycled(recorded(dataset, limit=limit), limit if tools >= 1000 else 0), tools, pattern)
    bound = bound_of(calls)
    rows = []
    for way in WAYS:
        if way.cadence != "call":
            continue
        run = asyncio.run(replay(calls, way.params, cadence=way.cadence, model=MODEL))
        money = spent(run)
        rows.append(
            {
                "recording": dataset,
                "tools": tools,
                "called": len({call.tool_name for call in calls}),
                "pattern": pattern,
                "calls": len(calls),
                "policy": way.name,
                "summaries": money.requests,
                "input_tokens": money.input_tokens,
                "times_single_pass": money.input_tokens / bound,
                "cost_per_1000_calls": 1000 * (money.cost or 0.0) / len(calls),
                "most_waiting": most_waiting(run),
                "share_read": share_read(run),
            }
        )
    return rows


def _cycled(calls: Sequence[ToolCallResult], least: int) -> list[ToolCallResult]:
    """At least `least` calls: from the beginning again where a recording has fewer."""
    found = list(calls)
    while len(found) < least:
        found += calls[: least - len(found)]
    return found
