"""Estimate what summaries of recorded calls cost, and how old guidance gets, by policy.

A policy is a set of params of SummaryToolMemoryOp, through which calls are replayed. Prompts are
built and counted, but not sent: a card replaces the model's text, so texts are not compared.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from toolmem.config.load import Configuration
from toolmem.config.sections import BudgetSection, ModelSection, Price
from toolmem.formats.data_frames import frame_of
from toolmem.judge.check import check
from toolmem.llm.budget import Budget
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.ops.parse_tool_call_result import DEFAULT_WINDOW
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.research.rates import percentile
from toolmem.store.sqlite import SqliteStore
from toolmem.text.stopped_calls import was_stopped

if TYPE_CHECKING:
    import pandas as pd

OP = SummaryToolMemoryOp.name
REPLY_TOKENS = 270  # of a summary: the prompt asks for at most 200 words
GROUP = 10  # calls without a conversation between two summaries
Params = Mapping[str, Any]  # of SummaryToolMemoryOp
BASE: Params = {"force": False, "min_new_calls": 1, "policy": "smart_skip"}
POLICIES: dict[str, Params] = {
    "always fresh": {"force": True},
    "smart skip, 1 new call": {"min_new_calls": 1},
    "smart skip, 10 new calls": {"min_new_calls": 10},
    "incremental, 10 new calls": {"min_new_calls": 10, "policy": "incremental"},
}
Watch = Callable[[ToolCallResult, Guidance | None], None]


class PolicyCost(Struct, kw_only=True):
    """What summaries under one policy would send and cost. Tokens are estimates."""

    policy: str = ""
    requests: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    saved_requests: int = 0  # summaries that were skipped
    saved_prompt_tokens: int = 0
    cost: float | None = None  # None: the model has no price
    currency: str = ""
    budget_reached: bool = False
    calls_read: float = 0.0  # the share of the calls that any summary read
    # How many calls of the tool the guidance at a call had not read; None: no guidance yet.
    age_median: int | None = None
    age_95: int | None = None  # 95th percentile


class Bill(Struct, kw_only=True):
    """What each policy costs, and the price that this is based on."""

    calls: int
    model: str
    price: Price | None
    policies: list[PolicyCost]


def summarization_costs(
    calls: Sequence[ToolCallResult],
    policies: Mapping[str, Params] = POLICIES,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Estimate what summaries of these calls would cost, with a row for each policy.

    Rows are indexed by the policy's name; columns are the fields of `PolicyCost`. See `bill`.
    """
    found = bill(calls, policies, config=config, overrides=overrides)
    return frame_of(PolicyCost, found.policies).set_index("policy")


def bill(
    calls: Sequence[ToolCallResult],
    policies: Mapping[str, Params] = POLICIES,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
    watch: Watch = lambda call, guidance: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Bill:
    """Replay calls in their order, and estimate what their summaries would cost by policy.

    `policies`: by name, params of SummaryToolMemoryOp. Tools are summarized after the last call of
    each conversation, or after every ten calls without one. Calls without a verdict are judged by
    patterns. The model in `config` and `overrides` is priced, but not asked. `watch` gets each call
    with the guidance at that moment. Raises ConfigError.
    """
    from toolmem.llm.models import DEFAULT_MODEL, DryRunModel

    judged = _judged(calls)
    with ToolMem(config, overrides=overrides) as memory:
        configuration = memory.engine.configuration
    settings = configuration.settings
    llm = settings.op[OP].llm
    budget = Budget(BudgetSection(), settings.prices)
    model = settings.llm.get(llm, ModelSection()).model_name or DEFAULT_MODEL
    Budget(settings.budget, settings.prices).check_model(model, f"llm.{llm}.model_name")
    counting = {llm: DryRunModel(model, budget)}
    # A forced summary has the guidance of the smart skip, and sends what that skips as well.
    given = {policy: {**BASE, **params} for policy, params in policies.items()}
    replayed = {
        policy: json.dumps({**params, **BASE} if params["force"] else params)
        for policy, params in given.items()
    }
    replays: dict[str, PolicyCost] = {}
    done = count(1)
    total = len(set(replayed.values())) * len(judged)

    def watch_and_count(call: ToolCallResult, guidance: Guidance | None) -> None:
        watch(call, guidance)
        progress(next(done), total)

    found = []
    for policy, key in replayed.items():
        if key not in replays:
            params = {**json.loads(key), "summary_sleep_interval": 0}
            more = [f"op.{OP}.params.{name}={json.dumps(value)}" for name, value in params.items()]
            stores = dict.fromkeys(settings.vector_store, SqliteStore(":memory:"))
            with ToolMem(
                config, overrides=[*overrides, *more], llms=counting, stores=stores
            ) as memory:
                replays[key] = _replay(memory, judged, watch_and_count)
        cost = replace(replays[key], policy=policy)
        if given[policy]["force"]:
            cost.requests += cost.saved_requests
            cost.prompt_tokens += cost.saved_prompt_tokens
            cost.saved_requests = cost.saved_prompt_tokens = 0
        _add_price(cost, model, budget, settings.budget)
        found.append(cost)
    return Bill(calls=len(judged), model=model, price=_price(configuration, model), policies=found)


def _add_price(cost: PolicyCost, model: str, budget: Budget, limits: BudgetSection) -> None:
    """Add the tokens of replies, the cost of all tokens, and whether a limit is passed."""
    cost.reply_tokens = REPLY_TOKENS * cost.requests
    cost.cost, cost.currency = budget.price(model, cost.prompt_tokens, cost.reply_tokens)
    tokens = cost.prompt_tokens + cost.reply_tokens
    cost.budget_reached = tokens > (limits.max_tokens or math.inf) or (
        limits.max_cost is not None and (cost.cost or 0.0) > limits.max_cost
    )


def _judged(calls: Sequence[ToolCallResult]) -> list[ToolCallResult]:
    """Give calls what a memory gives them: verdicts, and ids that are unique in a tool."""
    if all(call.seq is not None for call in calls):  # a memory orders its calls by tool
        calls = sorted(calls, key=lambda call: call.create_time)
    found: dict[tuple[str, str], ToolCallResult] = {}
    for number, call in enumerate(calls):
        key = call.tool_name, call.id or f"call {number}"
        if key not in found and not was_stopped(call.output):
            judged = call if call.score is not None else call.judged(check(call))
            found[key] = replace(judged, id=key[1], seq=None)
    return list(found.values())


def _conversations(calls: Sequence[ToolCallResult]) -> Iterator[list[ToolCallResult]]:
    """Split the calls after the last one of each conversation, or after ten without one."""
    keys = [call.conversation_id or number // GROUP for number, call in enumerate(calls)]
    begin = 0
    for last in sorted({key: number for number, key in enumerate(keys)}.values()):
        yield list(calls[begin : last + 1])
        begin = last + 1


def _replay(memory: ToolMem, calls: Sequence[ToolCallResult], watch: Watch) -> PolicyCost:
    cost = PolicyCost()
    workspace = memory.workspace_name
    store = memory.services.store(memory.engine.configuration.settings.op[OP])
    newest: dict[str, Guidance] = {}
    made: Counter[str] = Counter()  # calls of each tool
    ages: list[int] = []
    read: set[tuple[str, int]] = set()
    for group in _conversations(calls):
        for call in group:
            guidance = newest.get(call.tool_name)
            watch(call, guidance)
            if guidance is not None:
                ages.append(made[call.tool_name] - max(guidance.covered, default=0))
            made[call.tool_name] += 1
        store.append_calls(workspace, group, DEFAULT_WINDOW)
        done = memory.summarize(sorted({call.tool_name for call in group}))
        for record in store.records(workspace, done.summarized):
            if record.guidance is not None:
                newest[record.tool_name] = record.guidance
                read.update((record.tool_name, seq) for seq in record.guidance.covered)
        skipped = newest.keys() - set(done.summarized)  # also tools without a call in this group
        cost.requests += done.usage.requests
        cost.prompt_tokens += done.usage.prompt_tokens
        cost.saved_requests += len(skipped)
        cost.saved_prompt_tokens += sum(newest[name].prompt_tokens for name in skipped)
    cost.calls_read = len(read) / max(len(calls), 1)
    cost.age_median = percentile(ages, 0.5)
    cost.age_95 = percentile(ages, 0.95)
    return cost


def _price(configuration: Configuration, model: str) -> Price | None:
    """The price of a model. Its source is the file or override that changed it, if any."""
    price = configuration.settings.prices.get(model)
    layer = configuration.layer
    paths = [("prices", model, name) for name in ("source", "input", "output")]
    origins = [layer[path].origin.partition(":")[0] for path in paths if path in layer]
    others = [origin for origin in origins if origin != origins[0]]
    return replace(price, source=others[0], date="") if price is not None and others else price
