"""What summaries of recorded calls would cost, and how old guidance would be, by policy.

Calls are replayed through the real op. Prompts are built and counted, and not sent; a card stands
in for the model's text, so policies are compared in cost and freshness, and not in prose.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from toolmem.config.load import Configuration
from toolmem.config.sections import BudgetSection, ModelSection, OpSection, Price
from toolmem.judge.check import check
from toolmem.llm.budget import Budget
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.ops.parse_tool_call_result import DEFAULT_WINDOW
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.research.evaluation import Progress
from toolmem.text.stopped_calls import was_stopped

if TYPE_CHECKING:
    import pandas as pd

OP = SummaryToolMemoryOp.name
REPLY_TOKENS = 270  # of a summary, as the prompt asks for at most 200 words
GROUP = 10  # calls without a conversation after which a summary is asked for
Params = Mapping[str, Any]  # of SummaryToolMemoryOp
POLICIES: dict[str, Params | None] = {  # None: no model is asked
    "counting only": None,
    "always fresh": {"force": True},
    "smart skip, 1 new call": {"min_new_calls": 1},
    "smart skip, 10 new calls": {"min_new_calls": 10},
    "incremental, 10 new calls": {"min_new_calls": 10, "policy": "incremental"},
}
BASE: Params = {"force": False, "min_new_calls": 1, "policy": "smart_skip"}
Watch = Callable[[ToolCallResult, Guidance | None], None]


class PolicyCost(Struct, kw_only=True):
    """What one policy would have sent. Tokens are estimates."""

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
    # How many calls of its tool the guidance in force at a call had not read. Calls before the
    # first guidance of their tool are left out; None: there was none.
    age_median: int | None = None
    age_95: int | None = None  # 95th percentile


class Bill(Struct, kw_only=True):
    """What each policy costs, and by which price."""

    calls: int
    tools: int
    model: str
    price: Price | None
    policies: list[PolicyCost]


def summarization_costs(
    calls: Sequence[ToolCallResult],
    policies: Mapping[str, Params | None] = POLICIES,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """The policies of `bill` as rows: by name, with the fields of `PolicyCost`."""
    import pandas as pd

    found = bill(calls, policies, config=config, overrides=overrides)
    return pd.DataFrame(map(asdict, found.policies)).set_index("policy").convert_dtypes()


def bill(
    calls: Sequence[ToolCallResult],
    policies: Mapping[str, Params | None] = POLICIES,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
    watch: Watch = lambda call, held: None,
    progress: Progress = lambda done, total: None,
) -> Bill:
    """Replay calls in their order under each policy: params of the op, or None to ask no model.

    A summary is asked for after the last call of each conversation, or after every ten calls that
    name none. Calls without a verdict get that of the rule-based check. The model that `config` and
    `overrides` give the op is priced and never asked. `watch` is told each call, with the guidance
    in force. Raises ConfigError.
    """
    from toolmem.llm.models import DEFAULT_MODEL

    kept = _stored(calls)
    with ToolMem(config, overrides=overrides) as memory:
        configuration = memory.engine.configuration
    settings, name = configuration.settings, configuration.settings.op[OP].llm
    model = settings.llm.get(name, ModelSection()).model_name or DEFAULT_MODEL
    budget = Budget(settings.budget, settings.prices)
    budget.check_model(model, f"llm.{name}.model_name")
    keys = {policy: _replayed(params) for policy, params in policies.items()}
    done, total = count(1), len(set(keys.values())) * len(kept)

    def told(call: ToolCallResult, held: Guidance | None) -> None:
        watch(call, held)
        progress(next(done), total)

    replays: dict[str, PolicyCost] = {}
    for key in dict.fromkeys(keys.values()):
        with _opened(settings.op[OP], config, overrides, key) as memory:
            replays[key] = _replay(memory, kept, told)
    found = []
    for policy, params in policies.items():
        cost = _under(params, replays[keys[policy]])
        cost.policy, cost.reply_tokens = policy, REPLY_TOKENS * cost.requests
        cost.cost, cost.currency = budget.price(model, cost.prompt_tokens, cost.reply_tokens)
        cost.budget_reached = _reaches(cost, settings.budget)
        found.append(cost)
    return Bill(
        calls=len(kept),
        tools=len({call.tool_name for call in kept}),
        model=model,
        price=_price(configuration, model),
        policies=found,
    )


def _stored(calls: Sequence[ToolCallResult]) -> list[ToolCallResult]:
    """The calls as a memory stores them: with ids and verdicts, no id of a tool twice."""
    found: dict[tuple[str, str], ToolCallResult] = {}
    for number, call in enumerate(calls):
        key = call.tool_name, call.id or f"call {number}"
        if key not in found and not was_stopped(call.output):
            judged = call if call.score is not None else call.judged(check(call))
            found[key] = replace(judged, id=key[1], seq=None)
    return list(found.values())


def _conversations(calls: Sequence[ToolCallResult]) -> Iterator[list[ToolCallResult]]:
    """The calls up to the last of each conversation; without one, up to each tenth."""
    keys = [call.conversation_id or number // GROUP for number, call in enumerate(calls)]
    last = {key: number for number, key in enumerate(keys)}
    begin = 0
    for end in sorted(last.values()):
        yield list(calls[begin : end + 1])
        begin = end + 1


def _replayed(params: Params | None) -> str:
    """What is replayed for a policy, as JSON. Its cards are those of the smart skip.

    That holds without a model, and where calls that guidance covers are summarized again.
    """
    given = {**BASE, **(params or {})}
    return json.dumps(BASE if given["force"] else given, sort_keys=True)


def _under(params: Params | None, replayed: PolicyCost) -> PolicyCost:
    if params is None:
        return replace(
            replayed, requests=0, prompt_tokens=0, saved_requests=0, saved_prompt_tokens=0
        )
    if not params.get("force"):
        return replace(replayed)
    requests = replayed.requests + replayed.saved_requests
    tokens = replayed.prompt_tokens + replayed.saved_prompt_tokens
    return replace(
        replayed, requests=requests, prompt_tokens=tokens, saved_requests=0, saved_prompt_tokens=0
    )


def _opened(section: OpSection, config: str | None, overrides: Sequence[str], key: str) -> ToolMem:
    """A memory that keeps nothing and only counts prompts."""
    params = {**json.loads(key), "summary_sleep_interval": 0}
    own = [
        f"llm.{section.llm}.backend=dry_run",
        f"vector_store.{section.vector_store}.backend=memory",
        "budget.max_tokens=null",
        "budget.max_cost=null",
        *(f"op.{OP}.params.{name}={json.dumps(value)}" for name, value in params.items()),
    ]
    return ToolMem(config, workspace="costs", overrides=[*overrides, *own])


def _replay(memory: ToolMem, calls: Sequence[ToolCallResult], watch: Watch) -> PolicyCost:
    cost = PolicyCost()
    store = memory.services.store(memory.engine.configuration.settings.op[OP])
    held: dict[str, Guidance] = {}
    made: Counter[str] = Counter()  # calls of each tool
    ages: list[int] = []
    read: set[tuple[str, int]] = set()
    for group in _conversations(calls):
        for call in group:
            guidance = held.get(call.tool_name)
            watch(call, guidance)
            if guidance is not None:
                ages.append(made[call.tool_name] - max(guidance.covered))
            made[call.tool_name] += 1
        store.append_calls(memory.workspace_id, group, DEFAULT_WINDOW)
        done = memory.summarize(list(dict.fromkeys(call.tool_name for call in group)))
        for record in store.records(memory.workspace_id, done.summarized):
            if record.guidance is not None:
                held[record.tool_name] = record.guidance
                read.update((record.tool_name, seq) for seq in record.guidance.covered)
        skipped = held.keys() - set(done.summarized)  # a tool without a call here would be, too
        cost.requests += done.usage.requests
        cost.prompt_tokens += done.usage.prompt_tokens
        cost.saved_requests += len(skipped)
        cost.saved_prompt_tokens += sum(held[name].prompt_tokens for name in skipped)
    cost.calls_read = len(read) / len(calls) if calls else 0.0
    if ages:
        ages.sort()
        cost.age_median, cost.age_95 = (ages[math.ceil(p * len(ages)) - 1] for p in (0.5, 0.95))
    return cost


def _reaches(cost: PolicyCost, limits: BudgetSection) -> bool:
    tokens = cost.prompt_tokens + cost.reply_tokens
    return (limits.max_tokens is not None and tokens > limits.max_tokens) or (
        limits.max_cost is not None and (cost.cost or 0.0) > limits.max_cost
    )


def _price(configuration: Configuration, model: str) -> Price | None:
    """The price; its source is where it was set, unless the same file names another."""
    price, place = configuration.settings.prices.get(model), ("prices", model)
    origins = {
        name: setting.origin.partition(":")[0]
        for (*section, name), setting in configuration.layer.items()
        if tuple(section) == place
    }
    given = {origins[name] for name in ("input", "output") if name in origins}
    own = sorted(given - {origins.get("source")})
    return replace(price, source=", ".join(own), date="") if price is not None and own else price
