"""Which sentences take an instruction back, and which rule: precision and recall on labelled sentences.

    python benchmarks/withdrawals.py [--json FILE] [--errors] [--sentences FILE ...]

Each row: the rules that hold, one sentence, and what is expected of it: `withdraw:N` or `supersede:N` (the rule by its
place), `propose` (several may be meant: nothing changes, each is named) or `none`. Each rule is captured as of a turn
of its own, then the capture hook is handed the sentence, over a store in memory.

* `withdrawal_sentences.jsonl` (own): by the author of the reader, who improved it with their errors.
* `withdrawal_sentences_b.jsonl` (another hand, used since): by an author who had not read the reader. First measured
  before any of its errors were seen: precision 1.0 in both languages, recall 0.56 in English (9 of 16) and 0.63 in
  Chinese (10 of 16). Its errors were then used, so its figures of today measure nothing new.

Precision: of the rules withdrawn or superseded, those that were meant. Recall: of those meant, those that were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tables import Figure, show

from toolmem.flow.runner import SystemClock
from toolmem.light_models import Said
from toolmem.rules.capture.hook import ToolMemoryCaptureHook
from toolmem.rules.drafts import USER_EDICT, RuleDraft
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn
from toolmem.store.sqlite import SqliteStore

HERE = Path(__file__).parent
SETS = {"own": HERE / "withdrawal_sentences.jsonl", "another hand, used since": HERE / "withdrawal_sentences_b.jsonl"}
GOALS = {"precision": 0.97, "recall": 0.9}


async def outcome(store: SqliteStore, row: dict[str, Any], workspace: str) -> str:
    """What becomes of the rules, as a label."""
    rules = RuleStore(store, workspace, clock=SystemClock())
    kept = []
    for number, each in enumerate(row["active"], 1):
        said = Said(by="user", sentence=each["rule"], session="s", turn=number)
        draft = RuleDraft(each["tool"], each["rule"], "critical", "user_explicit", [USER_EDICT], said=said)
        rule = await rules.capture_rule(draft)
        kept.append(rule.id if rule is not None else "")
    tools = tuple(dict.fromkeys(each["tool"] for each in row["active"]))
    turn = Turn(row["sentence"], session_id="s", tools=tools, number=len(kept) + 2)
    captured = await ToolMemoryCaptureHook(rules, enabled=True).after_turn(turn)
    found = [f"withdraw:{kept.index(rule.id)}" for rule in captured.withdrawn if rule.id in kept]
    found += [f"supersede:{kept.index(rule.id)}" for rule in captured.superseded if rule.id in kept]
    if found:
        return "+".join(sorted(set(found)))
    several = sum(each["rule"].rstrip("。.") in note for note in captured.told for each in row["active"])
    return "propose" if several > 1 else "none"


async def outcomes(rows: Sequence[dict[str, Any]]) -> list[str]:
    async with SqliteStore(":memory:", clock=SystemClock(), embedder=None) as store:
        return [await outcome(store, row, f"w{number}") for number, row in enumerate(rows)]


def changes(label: str) -> set[str]:
    return {part for part in label.split("+") if ":" in part}


def measured(rows: Sequence[dict[str, Any]], found: Sequence[str]) -> dict[str, float]:
    pairs = [(changes(row["expected"]), changes(label)) for row, label in zip(rows, found, strict=True)]
    right = sum(len(wanted & got) for wanted, got in pairs)
    made, meant = sum(len(got) for _, got in pairs), sum(len(wanted) for wanted, _ in pairs)
    agreed = sum(row["expected"] == label for row, label in zip(rows, found, strict=True))
    return {
        "precision": right / made if made else 1.0,
        "recall": right / meant if meant else 1.0,
        "agreement": agreed / len(rows),
        "meant": meant,
        "made": made,
    }


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def figures(sets: dict[str, Path], *, errors: bool = False) -> list[Figure]:
    shown: list[Figure] = []
    for name, path in sets.items():
        rows = read(path)
        found = asyncio.run(outcomes(rows))
        for language in ("en", "zh"):
            chosen = [(row, label) for row, label in zip(rows, found, strict=True) if row["lang"] == language]
            result = measured([row for row, _ in chosen], [label for _, label in chosen])
            basis = f"{len(chosen)} sentences, {result['meant']:.0f} take back or replace, {result['made']:.0f} did"
            for figure in ("precision", "recall", "agreement"):
                goal = GOALS.get(figure)
                label = f"withdrawal, {name}, {language}: {figure}"
                shown.append(Figure(label, result[figure], "", goal, basis=basis, at_least=True))
        if errors:
            for row, label in zip(rows, found, strict=True):
                if row["expected"] != label:
                    rules = " | ".join(each["rule"] for each in row["active"])
                    print(f"{row['expected']:14} {label:14} {row['sentence']}   [{rules}]")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--errors", action="store_true", help="list what goes wrong")
    parser.add_argument("--sentences", type=Path, nargs="+", help="other files of such rows")
    given = parser.parse_args()
    sets = {path.stem: path for path in given.sentences} if given.sentences else SETS
    show(figures({name: path for name, path in sets.items() if path.exists()}, errors=given.errors), given.json)


if __name__ == "__main__":
    main()
