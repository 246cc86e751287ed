"""What each kind of sentence buys: guidance without it, asked about the same failures.

    python benchmarks/sentence_kinds.py [--data DIR] [--json FILE] [--quick] [--calls N]

The data-driven writer is asked after every 10th call of a tool, for its newest 30 calls, and given its own last
guidance; each failed call that was repaired is asked of the guidance that stood at that moment. Then every sentence of
one kind is left out of all texts, which leaves room for others within the same tokens, and the same failures are asked
again. A difference is *without* minus *with*: below 0 the kind is worth something, at 0 nothing, above 0 it takes the
place of something better. *Strict* coverage gives no credit for sentences about any failure. The Brier skill of the
claims' forecast and the share of warnings that later calls prove wrong are those of `guidance_benefit.py`.

Only the first N calls (2,500) of each recording are asked. The public recordings are not part of the project.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from guidance_benefit import DATASETS, GOAL_BUDGET, ROOT, SAMPLE, recorded
from tables import TextTable

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.render import Wording, lay_out
from toolmem.models import Claim, Guidance, ToolCallResult
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest.coverage import Coverage, pooled, replayed_coverage
from toolmem.research.backtest.paired import compare
from toolmem.research.backtest.replay import EVERY, WINDOW, kept_up
from toolmem.research.backtest.skill import forecasts, score
from toolmem.research.backtest.splitting import split_tools
from toolmem.research.backtest.warned import Warnings, check_warnings

BUDGETS = (200, 500)
MEASURES = tuple((budget, strict) for budget in BUDGETS for strict in (False, True))
FORECASTING = ("parameter", "refused")  # kinds that the forecast is made of
Calls = Sequence[ToolCallResult]
_WRITER = DataDrivenWriter()


def kind_of(claim: Claim) -> str:
    """Kinds that hold several sentences are told apart."""
    form = claim.subject.form if claim.subject is not None else ""
    if claim.kind == "repair_since":
        return "repair_any" if form == "repair_any" else "repair"
    return form if claim.kind in {"usage", "overall", "inconclusive", "repair", "repeat"} else claim.kind


def in_force(calls: Calls) -> list[Guidance | None]:
    """By call: the guidance of its tool at that moment."""
    held: list[ToolCallResult] = []
    guidance: Guidance | None = None
    found: list[Guidance | None] = []
    for seq, call in enumerate(calls, 1):
        held.append(call.model_copy(update={"seq": seq}))
        if seq % EVERY == 0:
            guidance = _WRITER.compose(call.tool_name, held[-WINDOW:], before=guidance.history if guidance else None)
        found.append(guidance)
    return found


class Recording:
    """The calls of every tool, each with the guidance that stood."""

    def __init__(self, name: str, tools: Mapping[str, Calls]) -> None:
        self.name = name
        self.tools = tools
        self._calls = [call for calls in tools.values() for call in calls]
        self._texts = [text for calls in tools.values() for text in in_force(calls)]
        self._less: dict[tuple[int, str], Guidance] = {}
        self.splits = [split for fold in (0, 1) for split in (split_tools(tools, fold=fold) or {}).values()]
        self._kept_up = [(split, kept_up(_WRITER, split.earlier)) for split in self.splits]

    def claims(self) -> Iterable[Claim]:
        return (claim for text in {id(text): text for text in self._texts if text}.values() for claim in text.claims)

    def texts(self) -> int:
        return len({id(text) for text in self._texts if text})

    def without(self, text: Guidance | None, kind: str) -> Guidance | None:
        if text is None or not kind or all(kind_of(one) != kind for one in text.claims):
            return text
        if (id(text), kind) not in self._less:
            kept = [one for one in text.claims if kind_of(one) != kind]
            self._less[id(text), kind] = text.model_copy(update={"claims": kept, "text": lay_out(kept, Wording())})
        return self._less[id(text), kind]

    def covered(self, kind: str, budget: int, strict: bool) -> Coverage:
        texts = [self.without(text, kind) for text in self._texts]
        return replayed_coverage(texts, self._calls, budget, strict=strict)

    def warned(self, kind: str) -> Warnings:
        found = []
        for split, text in self._kept_up:
            name = split.later[0].tool_name
            found += check_warnings({name: self.without(text, kind)}, {name: split.later}, GOAL_BUDGET).each
        return Warnings(tuple(found))


def skill_without(recordings: Sequence[Recording], kind: str) -> float | None:
    leave_out = (kind,) if kind in FORECASTING else ()
    splits = [split for one in recordings for split in one.splits]
    return score([f for split in splits for f in forecasts(split.earlier, split.later, leave_out)]).score


def table(recordings: Sequence[Recording]) -> TextTable:
    @cache
    def covered(kind: str, budget: int, strict: bool) -> Coverage:
        return pooled([one.covered(kind, budget, strict) for one in recordings])

    @cache
    def warned(kind: str) -> Warnings:
        return Warnings(tuple(each for one in recordings for each in one.warned(kind).each))

    skill = cache(lambda kind: skill_without(recordings, kind))
    count = QwenTokenizer().count
    kinds: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for claim in (claim for one in recordings for claim in one.claims()):
        kinds[kind_of(claim)] += 1
        tokens[kind_of(claim)] += count(claim.text)
    texts = sum(one.texts() for one in recordings)
    whole = [f"{covered('', *each).share or 0:.3f}" for each in MEASURES]
    told = warned("")
    share = f"{told.wrong} of {told.checked}"
    rows = [("all kinds", "", f"{sum(tokens.values()) / texts:.0f}", *whole, f"{skill('') or 0:.3f}", share)]
    for kind, n in kinds.most_common():
        cells = []
        for each in MEASURES:
            made = compare(covered("", *each), covered(kind, *each))
            cells.append(f"{made.difference:+.3f} ({made.only_second}/{made.only_first})" if made.difference else "0")
        less = warned(kind)
        changed = f"{(skill(kind) or 0) - (skill('') or 0):+.3f}" if kind in FORECASTING else "0"
        wrong = f"{less.wrong} of {less.checked}" if (less.wrong, less.checked) != (told.wrong, told.checked) else "0"
        rows.append((kind, f"{n / texts:.2f}", f"{tokens[kind] / texts:.0f}", *cells, changed, wrong))
    failures = covered("", *MEASURES[0]).n
    names = ", ".join(one.name for one in recordings)
    return TextTable(
        f"Guidance without one kind of sentence: {failures} repaired failures of {names}",
        (
            *("kind", "per text", "tokens"),
            *(f"{budget} tokens{', strict' if strict else ''}" for budget, strict in MEASURES),
            *("skill", "wrong warnings"),
        ),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the recordings")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    parser.add_argument("--quick", action="store_true", help="the project's own sample only")
    parser.add_argument("--calls", type=int, default=2_500, help="of each recording, the first so many")
    options = parser.parse_args()
    folder = options.data / "recorded_calls"
    paths = {"sample": SAMPLE, **({} if options.quick else {n: folder / f"{n}.calls.jsonl.gz" for n in DATASETS})}
    made = [Recording(n, first(recorded(path), options.calls)) for n, path in paths.items() if path.exists()]
    shown = table(made)
    shown.show()
    if options.json is not None:
        body = {"tables": [asdict(replace(shown))]}
        options.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def first(tools: Mapping[str, Calls], number: int) -> dict[str, Calls]:
    """The first calls of a recording, by time."""
    ordered = sorted((call for calls in tools.values() for call in calls), key=lambda call: call.create_time)[:number]
    kept = {id(call) for call in ordered}
    return {name: some for name, calls in tools.items() if (some := [call for call in calls if id(call) in kept])}


if __name__ == "__main__":
    main()
