"""What guidance buys, from earlier conversations to later ones: repair coverage.

    python benchmarks/guidance_benefit.py [--data DIR] [--json FILE] [--quick] [--dataset NAME ...]

Every tool's calls are split in time, no task on both sides (`toolmem.research.backtest.splitting`; without tasks by
conversation; in two folds where tasks lie on both sides of the cut). Guidance is written from the earlier part and
asked about the later one:

* **repair coverage**: of the failures that the tool's next calls repaired, the share whose kind of repair the guidance
  names for that class of error, within 200, 500 and 1000 tokens per tool (Qwen's tokenizer, whole lines);
* **strict**: the same without credit for what is told of any failure.

Writers, cards of up to 1000 tokens: `kept up` is the data-driven writer as it runs, a window of 30 calls, asked after
every 10th call and given its own last guidance; `last window` read the newest 30 calls once; `all at once` read all
earlier calls. Baselines: no guidance; `counting only` lists how often each error and each repair came, not joined.
Marks to look up to: `pairs` lists every error with every repair by count and says nothing else; `seen before` is the
share of repairs that ever followed their class of error in the earlier part, at any length.

Intervals are 95 % bootstrap intervals (2000 draws) over tasks or conversations. The public recordings are not part of
the project; those that are absent are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tables import TextTable

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult
from toolmem.research.backtest.baselines import counting_only, counting_pairs
from toolmem.research.backtest.coverage import BUDGETS, Coverage, Text, ceiling, coverage, pooled
from toolmem.research.backtest.opportunities import opportunities
from toolmem.research.backtest.paired import compare
from toolmem.research.backtest.replay import WINDOW, kept_up
from toolmem.research.backtest.splitting import Split, split_tools

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "toolmem" / "data" / "recording.calls.jsonl.gz"
DATASETS = ("intercode", "tau_bench", "tau2_airline", "toolbench", "openhands")
GOAL_ON = ("intercode", "tau_bench")
GOAL, GOAL_BUDGET = 0.5, 500  # strict coverage of the writer as it runs by default, and not below pairs
MARGIN = 0.02
COVERED, STRICT = "repair coverage", "repair coverage, strict"

Calls = Sequence[ToolCallResult]
_WRITER = DataDrivenWriter(max_tokens=BUDGETS[-1])
WRITERS: Mapping[str, Callable[[Calls], Text]] = {
    "no guidance": lambda calls: None,
    "counting only": counting_only,
    "data-driven, kept up": lambda calls: kept_up(_WRITER, calls),
    "data-driven, last window": lambda calls: _WRITER.compose(calls[0].tool_name, calls[-WINDOW:]),
    "data-driven, all at once": lambda calls: _WRITER.compose(calls[0].tool_name, calls),
    "pairs": counting_pairs,
}
MEASURED = "data-driven, kept up"


@dataclass(frozen=True)
class Row:
    """One figure of one dataset. `n`: failures, calls or warnings that it is a share of."""

    dataset: str
    measure: str
    writer: str
    budget: int | None  # tokens per tool
    n: int
    value: float | None
    low: float
    high: float


def recorded(path: Path) -> dict[str, list[ToolCallResult]]:
    """Judged calls by tool, in order of arrival."""
    judge = RuleBasedCheck()
    tools: dict[str, list[ToolCallResult]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            call = ToolCallResult(**{"id": str(i), **json.loads(line)})
            tools.setdefault(call.tool_name, []).append(call.judged(judge.check(call)))
    return tools


class Fold:
    """One split of a recording, with every writer's guidance on the earlier part."""

    def __init__(self, splits: Mapping[str, Split]) -> None:
        self.splits = splits
        self.earlier = [call for split in splits.values() for call in split.earlier]
        self.later = [call for split in splits.values() for call in split.later]
        self.guidance = {
            writer: {tool: write(split.earlier) for tool, split in splits.items()} for writer, write in WRITERS.items()
        }

    def covered(self, writer: str, budget: int, *, strict: bool = False) -> Coverage:
        return coverage(self.guidance[writer], self.later, budget, strict=strict)


class Dataset:
    """One recording: two folds, where tasks lie on both sides of the cut, else one."""

    def __init__(self, name: str, tools: Mapping[str, Sequence[ToolCallResult]]) -> None:
        self.name = name
        self.folds = [Fold(splits) for fold in (0, 1) if (splits := split_tools(tools, fold=fold))]
        self.calls = sum(map(len, tools.values()))

    def covered(self, writer: str, budget: int, *, strict: bool = False) -> Coverage:
        return pooled([fold.covered(writer, budget, strict=strict) for fold in self.folds])

    def about(self) -> tuple[str, ...]:
        splits = [split for fold in self.folds for split in fold.splits.values()]
        known = [hit for fold in self.folds for hit in ceiling(opportunities(fold.earlier), opportunities(fold.later))]
        return (
            *(self.name, "/".join(sorted({split.by for split in splits})), str(len(self.folds)), str(self.calls)),
            "+".join(str(len(fold.earlier)) for fold in self.folds),
            "+".join(str(len(fold.later)) for fold in self.folds),
            *(str(len(known)), f"{sum(known) / len(known):.2f}" if known else "-"),
        )

    def coverage_rows(self) -> list[Row]:
        rows = []
        for writer in WRITERS:
            for budget in BUDGETS:
                for measure in (COVERED, STRICT):
                    made = self.covered(writer, budget, strict=measure == STRICT)
                    rows.append(Row(self.name, measure, writer, budget, made.n, made.share, *made.interval()))
        return rows

    def against(self, other: str) -> tuple[str, ...] | None:
        """Strictly, the card as it runs beside another text."""
        first, second = (self.covered(each, GOAL_BUDGET, strict=True) for each in (other, MEASURED))
        if not first.n:
            return None
        made = compare(first, second, MARGIN)
        return (
            *(self.name, str(made.n), str(made.clusters), f"{made.first:.2f}", f"{made.second:.2f}"),
            *(f"{made.difference:+.2f} ({made.low:+.2f} to {made.high:+.2f})", str(made.only_second)),
            *(str(made.only_first), made.verdict),
        )


def datasets(folder: Path, names: Sequence[str]) -> list[Dataset]:
    paths = {**{name: folder / f"{name}.calls.jsonl.gz" for name in DATASETS}, "sample": SAMPLE}
    return [
        Dataset(name, recorded(path)) for name, path in paths.items() if path.exists() and (not names or name in names)
    ]


def _shown(share: float | None, low: float, high: float) -> str:
    if share is None:
        return "-"
    return f"{share:.2f} ({low:.2f} to {high:.2f})" if low > float("-inf") else f"{share:.2f} (one task)"


def tables(made: Sequence[Dataset], rows: Sequence[Row]) -> list[TextTable]:
    cells = {(row.measure, row.dataset, row.writer, row.budget): _shown(row.value, row.low, row.high) for row in rows}
    return [
        TextTable(
            "Later calls, and what the earlier ones know of them",
            (
                *("dataset", "split by", "folds", "calls", "earlier calls", "later calls", "repaired failures"),
                "seen before",
            ),
            [one.about() for one in made],
        ),
        *(
            TextTable(
                f"{measure[0].upper()}{measure[1:]}, of later failures (95 % interval), by tokens per tool",
                ("dataset", "guidance", *(f"{budget} tokens" for budget in BUDGETS)),
                [
                    (one.name, writer, *(cells[measure, one.name, writer, budget] for budget in BUDGETS))
                    for one in made
                    for writer in WRITERS
                ],
            )
            for measure in (COVERED, STRICT)
        ),
        TextTable(
            f"Kept up against pairs, strictly, failure by failure, {GOAL_BUDGET} tokens (margin {MARGIN})",
            (
                *("dataset", "failures", "clusters", "pairs", "kept up", "difference", "only kept up"),
                *("only pairs", "verdict"),
            ),
            [row for one in made if (row := one.against("pairs")) is not None],
        ),
    ]


def goals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The goal, dataset by dataset: at least GOAL, and not below pairs."""
    at = {(row.dataset, row.writer): row for row in rows if row.measure == STRICT and row.budget == GOAL_BUDGET}
    found = []
    for dataset in GOAL_ON:
        if (row := at.get((dataset, MEASURED))) is None or row.value is None:
            continue
        pairs = at[dataset, "pairs"].value or 0.0
        found.append(
            {
                "question": f"repair coverage at {GOAL_BUDGET} tokens, {dataset}, later conversations, strict",
                "value": row.value,
                "goal": GOAL,
                "pairs": pairs,
                "met": row.value >= GOAL and row.value >= pairs,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the recordings")
    parser.add_argument("--json", type=Path, help="write tables and rows to this file")
    parser.add_argument("--quick", action="store_true", help="the project's own sample only")
    parser.add_argument("--dataset", nargs="*", default=[], metavar="NAME", help="only these")
    options = parser.parse_args()
    folder = options.data / "recorded_calls"
    if not folder.is_dir():
        print("no recordings in the data folder: only the project's own sample is measured")
    made = datasets(folder, ["sample"] if options.quick else options.dataset)
    rows = [row for one in made for row in one.coverage_rows()]
    shown = tables(made, rows)
    for table in shown:
        table.show()
    reached = goals(rows)
    for goal in reached:
        verdict = "met" if goal["met"] else "NOT met"
        print(
            f"\n{goal['question']}: {goal['value']:.2f}, pairs {goal['pairs']:.2f}; "
            f"goal at least {goal['goal']} and not below pairs: {verdict}"
        )
    if options.json is not None:
        body = {
            "goals": reached,
            "tables": [asdict(table) for table in shown],
            "rows": [{key: _finite(value) for key, value in asdict(row).items()} for row in rows],
        }
        options.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    """JSON knows no infinity."""
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


if __name__ == "__main__":
    main()
