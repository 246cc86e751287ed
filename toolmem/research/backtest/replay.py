"""A recording once more, call by call, as it would have gone under a policy: what was asked, and what the agent knew.

Calls that are judged already are stored one by one, and the flow `summary_tool_memory` runs at each moment that the
cadence names: the op, the store (in memory) and the prompts are the real ones. Nothing is sent: a dry run counts the
prompts, and where a model's text would be needed the data-driven writer's stands in for it. Time is that of the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolmem.app import ToolMemApp
from toolmem.flow.report import RunReport
from toolmem.providers.dry_run import DryRunLLM
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.clock import ManualClock

if TYPE_CHECKING:
    from toolmem.guidance.counted.data_driven import DataDrivenWriter
    from toolmem.models import Guidance, ToolCallResult
    from toolmem.protocols import Purpose, Tokenizer

WINDOW = 30  # newest calls that a summary reads (recent_call_count's default)
EVERY = 10  # calls between two summaries

WORKSPACE = "replay"
FLOW = "summary_tool_memory"
OP = "summary_tool_memory_op"

Cadence = Literal["call", "conversation", "day"]
Of = Literal["called", "known"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened. `in_force[i]`: the guidance of `calls[i].tool_name` once the summaries due after it were made."""

    calls: tuple[ToolCallResult, ...]
    in_force: tuple[Guidance | None, ...]
    reports: tuple[RunReport, ...]  # of the summary runs, oldest first

    @property
    def requests(self) -> int:
        return sum(len(report.entries) for report in self.reports)

    @property
    def prompt_tokens(self) -> int:
        return sum(entry.prompt_tokens for report in self.reports for entry in report.entries)


async def replay(
    calls: Sequence[ToolCallResult],
    policy: Mapping[str, Any],
    *,
    cadence: Cadence = "call",
    of: Of = "called",
    keep: int = 100,
    model: str = "qwen-plus",
    tokenizer: Tokenizer | None = None,
    overrides: Sequence[str] = (),
) -> Replay:
    """Replay judged `calls` (oldest first). `policy`: params of SummaryToolMemoryOp.

    `cadence`: when the summary flow runs: after each call, conversation, or day (UTC). `of`: for the tools that were
    called since it last ran so, or for all that are known. `keep`: calls kept per tool. `model`: whose prices are
    booked, with a warm prefix cache.

    Raises ConfigError where a param does not exist.
    """
    settings = [
        "vector_store.default.params.path=':memory:'",
        "llm.default.backend=dry_run",
        f"llm.default.model_name={model}",
        *(f"op.{OP}.params.{name}={value}" for name, value in policy.items()),
        *overrides,
    ]
    counter = tokenizer or QwenTokenizer()
    clock = ManualClock(calls[0].create_time) if calls else ManualClock()
    dry = DryRunLLM(
        model, counter, clock=clock, price=lambda *tokens: prices(*tokens), cached=WarmPrefixCache(counter).served
    )
    app = ToolMemApp(overrides=settings, clock=clock, llms={"default": dry})
    prices = app.services.price  # of the configuration that the model is part of
    async with app:
        return await _replayed(app, clock, list(calls), _due(calls, cadence, of), keep)


async def _replayed(
    app: ToolMemApp, clock: ManualClock, calls: Sequence[ToolCallResult], due: Callable[[int], list[str]], keep: int
) -> Replay:
    store = await app.services.store_named()
    guidance: dict[str, Guidance | None] = {}
    in_force: list[Guidance | None] = []
    reports: list[RunReport] = []
    for place, call in enumerate(calls):
        clock.advance(max((call.create_time - clock.now()).total_seconds(), 0.0))
        await store.append_calls(WORKSPACE, call.tool_name, [call], keep)
        if names := due(place):
            run = await app.run_detailed(FLOW, workspace_id=WORKSPACE, tool_names=names)
            reports.append(run.report)
            if written := run.response.metadata["summarized"]:
                records = await store.records(WORKSPACE, written)
                guidance |= {record.tool_name: record.guidance for record in records}
        in_force.append(guidance.get(call.tool_name))
    return Replay(tuple(calls), tuple(in_force), tuple(reports))


def _due(calls: Sequence[ToolCallResult], cadence: Cadence, of: Of) -> Callable[[int], list[str]]:
    """The tools for which the flow runs after the call at a place; none where it does not run."""
    keys = [_key(call, cadence, place) for place, call in enumerate(calls)]
    last = {key: place for place, key in enumerate(keys)}
    tools: dict[str, dict[str, None]] = {}
    known: dict[str, None] = {}
    seen: list[list[str]] = []  # of the places at which it runs
    for place, (key, call) in enumerate(zip(keys, calls, strict=True)):
        tools.setdefault(key, {})[call.tool_name] = None
        known[call.tool_name] = None
        runs = last[key] == place
        seen.append(list(known if of == "known" else tools[key]) if runs else [])
    return seen.__getitem__


def _key(call: ToolCallResult, cadence: Cadence, place: int) -> str:
    """Calls of one key are followed by one run."""
    if cadence == "day":
        return f"{call.create_time:%Y-%m-%d}"
    conversation = call.conversation_id if cadence == "conversation" else ""
    return f"conversation {conversation}" if conversation else f"call {place}"


def kept_up(
    writer: DataDrivenWriter, calls: Sequence[ToolCallResult], window: int = WINDOW, every: int = EVERY
) -> Guidance | None:
    """What `writer` says after `calls` (oldest first, of one tool); None for no calls.

    It was asked for the newest `window` calls at every `every`-th call, the last time after the last one, and each time
    it was given what it had said before. Calls get seqs from 1, as a store would number them.
    """
    if window < 1 or every < 1:
        raise ValueError(f"a window and a distance of one call or more are wanted, got {window} and {every}")
    numbered = [call.model_copy(update={"seq": seq}) for seq, call in enumerate(calls, 1)]
    guidance: Guidance | None = None
    for end in range(len(calls) % every or every, len(calls) + 1, every):
        held = numbered[max(0, end - window) : end]
        guidance = writer.compose(held[0].tool_name, held, before=guidance.history if guidance else None)
    return guidance


# ---------------------------------------------------------------- a warm prefix cache

LEAST = 256  # tokens; shorter prefixes are not kept (help.aliyun.com/en/model-studio/context-cache; it varies by model)


class WarmPrefixCache:
    """Remembers the last prompt of each workspace, op and tool. Tokens of a prefix are counted by `tokenizer`."""

    def __init__(self, tokenizer: Tokenizer, least: int = LEAST) -> None:
        self._tokenizer = tokenizer
        self._least = least
        self._last: dict[tuple[str, str, str], str] = {}

    def served(self, prompt: str, purpose: Purpose) -> int:
        """Tokens of `prompt` that the cache serves; 0 where the prefix is shorter than `least`. Remembers `prompt`."""
        key = (purpose.workspace, purpose.op, purpose.tool)
        shared = prompt[: _alike(self._last.get(key, ""), prompt)]
        self._last[key] = prompt
        if len(shared) < self._least:  # a token has at least one character
            return 0
        tokens = self._tokenizer.count(shared)
        return tokens if tokens >= self._least else 0


def _alike(first: str, second: str) -> int:
    """How many characters both begin with."""
    differing = (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differing, min(len(first), len(second)))
