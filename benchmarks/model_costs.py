"""What judging costs in requests and tokens: per 1000 calls of the four largest recordings, beside the peer.

    python benchmarks/model_costs.py [--quick] [--json FILE]

`llm.default.backend=dry_run` builds the true evaluation prompts, counts them with Qwen's tokenizer and sends nothing.
The peer asks once per call with a template of 2,390 characters around the same fields (tool name, input, output,
success, seconds, tokens); its wording is not ours to copy, so `peer_template` fills exactly that length with neutral
instructions of the same kind. Outputs are cut alike on both sides, so that the templates alone are compared. The peer
in fact sends outputs whole; that row says so.

No model is asked. The recordings are not part of the project; without the folder the benchmark says so and stops.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tables import Figure, arguments, show

from toolmem.judge.llm_judge import MAX_PROMPT_CHARACTERS, LLMJudge, judge_prompts
from toolmem.models import ToolCallResult
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.readers.prompt_templates import EVALUATE
from toolmem.readers.prompt_text import as_json, fit, seconds_text

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded_calls"
DATASETS = ("intercode", "tau_bench", "toolbench", "tau2_airline")
PEER_LENGTH = 2390  # characters, placeholders included
GOAL = 0.60

_PEER = """\
You are an experienced reviewer of software agents. Your work is to look at one call that an agent made to one of its
tools, and to write an assessment of this call that other people can rely on later, when they decide how the tool should
be used. Read everything that follows with care before you begin to answer.

## Information about the call

Name of the tool: {tool_name}
Parameters that were passed to the tool: {input_params}
Output that the tool returned: {output}
Flag that says whether the call was successful: {success_flag}
Time that the call took, in seconds: {time_cost}
Number of tokens that the call used: {token_cost}

## What you should assess

First, think about whether the call was carried out without an error. The flag can be misleading, so compare it with
what the output really says, and look for messages that tell of a failure, a refusal or an empty result.
Second, think about whether the parameters make sense for this tool: whether they are complete, whether their types and
values are reasonable, and whether they belong to what the agent seems to have wanted.
Third, think about whether the output is of use: whether it answers what was asked by the parameters, whether it is
complete enough to go on with, and whether it contains content that has nothing to do with the request.
Fourth, think about whether the time and the number of tokens are in a sensible relation to what was achieved.

## How you should answer

Write a short summary of the call, one or two sentences long, which describes what the call was meant to do and what
came out of it. Then write an evaluation, a few sentences long, which gives the reasons for your assessment and points
to the places in the output on which it is based. At the end give a score. The score is 1.0 where the call was
successful and its output was useful, and it is 0.0 where the call failed, or where its output was of no use for the
request.

Answer with one JSON object in a fenced block, in exactly this form, and with nothing before it and nothing after it:

```json
{"summary": "a short summary of the call", "evaluation": "the reasons for the score", "score": 1.0}
```
"""
_PADDING = "Please be fair, precise and brief, and base every statement on what you were given. "


def peer_template() -> str:
    """Exactly PEER_LENGTH characters."""
    room = PEER_LENGTH - len(_PEER)
    assert room >= 0, f"{-room} characters too long"
    return _PEER + (_PADDING * (room // len(_PADDING) + 1))[:room]


class PeerPrompt:
    """One prompt of the peer's length per call."""

    def __init__(self) -> None:
        self._template = peer_template()
        self._tokenizer = QwenTokenizer()

    def tokens(self, fields: dict[str, str]) -> int:
        prompt = self._template
        for name, text in fields.items():
            prompt = prompt.replace("{" + name + "}", text)
        return self._tokenizer.count(prompt)


def fields_of(call: ToolCallResult, cut: bool, room: int) -> dict[str, str]:
    """The six fields as text, cut as our judge cuts them, or whole."""
    known = {
        "tool_name": call.tool_name,
        "success_flag": str(call.success).lower(),
        "time_cost": seconds_text(call.time_cost) or "unknown",
        "token_cost": "unknown" if call.token_cost is None else str(call.token_cost),
        "input_params": as_json(call.input),
        "output": call.output,
    }
    return fit(known, room) if cut else known


async def dry_run(calls: list[ToolCallResult], folder: Path) -> dict[str, Any]:
    """What the flow `add_tool_call_result` reports of a dry run, twice over the same calls."""
    from toolmem import ToolMemApp

    overrides = [f"vector_store.default.params.path='{folder / 'memory.db'}'", "llm.default.backend=dry_run"]
    async with ToolMemApp(overrides=overrides) as app:
        request = {"workspace_id": "costs", "tool_call_results": calls}
        first = (await app.run_flow("add_tool_call_result", **request)).metadata
        again = (await app.run_flow("add_tool_call_result", **request)).metadata
    return {**first["usage"], "reused": first["evaluation"]["reused"], "again": again["usage"]["requests"]}


def measure(dataset: str, limit: int | None) -> list[Figure]:
    from toolmem.flow.runner import SystemClock
    from toolmem.formats.files import read_file

    path = DATA / f"{dataset}.calls.jsonl.gz"
    calls = [call for _, call in read_file(path, clock=SystemClock(), limit=limit).calls]
    with tempfile.TemporaryDirectory() as folder:
        ours = asyncio.run(dry_run(calls, Path(folder)))
    judge = LLMJudge(_Nobody(), judge_prompts(), QwenTokenizer())
    room = MAX_PROMPT_CHARACTERS - judge_prompts().template(EVALUATE, "").size
    per_call = sum(judge.prompt_tokens(call, None) for call in calls) / len(calls)
    peer = PeerPrompt()
    same = sum(peer.tokens(fields_of(call, True, room)) for call in calls) / len(calls)
    whole = sum(peer.tokens(fields_of(call, False, room)) for call in calls) / len(calls)
    thousand = 1000 / len(calls)
    basis = f"{len(calls):,} calls"
    return [
        Figure(f"{dataset}: requests per 1000 calls", ours["requests"] * thousand, "", None, "1000", basis),
        Figure(
            f"{dataset}: requests saved by the verdict cache, of 1000",
            ours["reused"] * thousand,
            "",
            None,
            "0",
            f"{basis}; identical calls are judged once",
        ),
        Figure(f"{dataset}: requests per 1000 calls sent again", ours["again"] * thousand, "", 0, "1000", basis),
        Figure(
            f"{dataset}: prompt tokens per 1000 calls",
            ours["prompt_tokens"] * thousand,
            "",
            None,
            f"{whole * 1000:,.0f} (outputs whole)",
            basis,
        ),
        Figure(
            f"{dataset}: prompt tokens per evaluation",
            per_call,
            "",
            None,
            f"{same:,.0f}",
            basis,
        ),
        Figure(
            f"{dataset}: prompt tokens per evaluation, share of the peer's",
            per_call / same,
            "",
            GOAL,
            "1",
            f"{basis}, the same fields, cut alike",
        ),
    ]


class _Nobody:
    """A model that is never asked: only prompts are built."""

    backend = "dry_run"
    model = "qwen-plus"

    async def complete(self, prompt: str, purpose: Any, *, json_reply: bool = False) -> Any:
        raise AssertionError("nothing is asked here")


def main() -> None:
    options = arguments(__doc__)
    if not DATA.is_dir():
        sys.exit(f"the recordings are not here ({DATA.name} beside the project): nothing to measure")
    bare = ToolCallResult(tool_name="t", create_time=datetime(2026, 1, 1, tzinfo=UTC))
    alone = LLMJudge(_Nobody(), judge_prompts(), QwenTokenizer()).prompt_tokens(bare, None)
    peer = PeerPrompt().tokens({})
    figures = [Figure("the template alone, no call in it", alone, "tokens", None, f"{peer}", "Qwen's tokenizer")]
    for dataset in DATASETS:
        figures += measure(dataset, 200 if options.quick else None)
    show(figures, options.json)


if __name__ == "__main__":
    main()
