"""The writer without a model: every sentence is a claim `{text, k, n, call_ids, kind}`.

What `call_ids` holds, by kind:

* the n calls that are compared or counted: `overall` (k worked, or, where the text says so, failed), `recorded_flag`
  (k are a success by `ToolCallResult.failed`), `parameter` and `sequence` (k of the n calls where the condition
  holds worked), `refused` (none of the n calls with such a value worked, k errors name the parameter or its
  value), `empty_pattern` (k of n answers were useful), `inconclusive`;
* the k calls that the sentence counts among n: `error_class` (of the failures), `empty_answer` (of the calls that did
  not fail), `usage` (of the calls shown), `unrecovered` (of those that were followed by another call),
  `repeat` (of the repeats of failed calls);
* `repair`: the last failure before each of the k successes that came in this way, of the n that followed failures of
  its kind; a run of failures that ends in one success counts once;
* the k failures of n of one kind that name a parameter or its value: `target`;
* the newest of the k failures that were recovered in this way, counted like `repair`, over every call since the day
  that the sentence names: `repair_since`; the calls before the window may have left the store, their counts stand in
  `Guidance.history`.

A call went wrong where its recorded flag or the judge says so (`outcomes.went_wrong`); otherwise it worked, whether or
not its answer was useful; `ToolStatistics.success_rate` goes by the flag alone. What is claimed about parameters passed
Fisher's exact test under Tarone's correction (`patterns`): the chance of one or more false claims per tool is at most
5 %. Refused values, repairs, errors and repeats state what was counted and no cause. An error is told by itself only
where no repair names it: `benchmarks/sentence_kinds.py` measures what each kind of sentence buys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolmem.guidance.counted import claims
from toolmem.guidance.counted.analysis import Analysis, analyze
from toolmem.guidance.counted.claim_edits import editable, updated
from toolmem.guidance.counted.render import Wording, lay_out, said
from toolmem.guidance.counted.repair_claims import pointed_at, repairs, since, unrecovered
from toolmem.guidance.counted.repair_history import counted
from toolmem.guidance.counted.usage_claims import usage
from toolmem.models import Claim, Guidance, Language, RepairHistory, ToolCallResult
from toolmem.protocols import Purpose

AUTHOR = "offline/data_driven"

_BESIDE = ("outcomes", "shown", "statistics")  # modules beside this package that its sentences hang on
_READERS = ("error_messages", "proportions", "shell", "sql")


@cache
def rules_version() -> str:
    """First 12 characters of the hash of the rules: other rules are another version of the writer."""
    here, package = Path(__file__).parent, Path(__file__).parents[2]
    files = sorted(file for file in here.iterdir() if file.suffix in {".py", ".yaml"})
    files += [package / "guidance" / f"{name}.py" for name in _BESIDE]
    files += [package / "readers" / f"{name}.py" for name in _READERS]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_text(encoding="utf-8").encode())
    return digest.hexdigest()[:12]


class DataDrivenWriter:
    """Implements `GuidanceWriter` without a model, in English ("") or Chinese ("zh"): deterministic, free of charge."""

    def __init__(self, language: Language = "") -> None:
        self._language: Language = language

    @property
    def author(self) -> str:
        return AUTHOR

    @property
    def prompt_version(self) -> str:
        """The version of the rules; another language is another version."""
        return f"{rules_version()}-{self._language}" if self._language else rules_version()

    @property
    def edit_version(self) -> str:
        return self.prompt_version

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        """`compose` for the port; never raises. Of `old` only the history of repairs is used, `purpose` not at all."""
        return self.compose(tool_name, calls, old.history if old else None)

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Change `old`, and its history, by what the calls `new` say, and by no other call (`claim_edits`).

        Guidance whose claims are sentences alone, as version 0.1 stored them, is written anew from the whole window.
        """
        say = Wording(self._language)
        if not editable(old, say):
            return self.compose(tool_name, window, old.history)
        wanted = set(new)
        fresh = [call for call in window if call.seq in wanted]
        made = self.compose(tool_name, fresh, old.history)
        return updated(old, made, analyze(tool_name, fresh), window, say)

    def compose(self, tool_name: str, calls: Sequence[ToolCallResult], before: RepairHistory | None = None) -> Guidance:
        """Guidance from `calls` (oldest first, all of one tool). Claims come most valuable first.

        `before`: the history of the tool's guidance so far; repairs are counted on where it holds calls that are not
        among `calls`. Needs calls with a seq. A call without an id is named by its place, `#1` being the oldest. Never
        raises on what a call may hold.
        """
        found = analyze(tool_name, calls)
        say = Wording(self._language)
        history = counted(found, before)
        told = said(_everything(found, history), say, len(found.where(False)))
        return Guidance(
            text=lay_out(told, say),
            claims=told,
            statistics=found.statistics,
            covered=[call.seq for call in calls if call.seq is not None],
            author=self.author,
            prompt_version=self.prompt_version,
            history=history,
        )


def _everything(found: Analysis, history: RepairHistory | None) -> list[Claim]:
    if not found.calls:
        return list(claims.overall(found))
    if history is not None and history.calls <= len(found.calls):
        history = None  # the window is all of it
    repaired = list(repairs(found) if history is None else since(found, history))
    return [
        *claims.overall(found),
        *usage(found),
        *claims.patterns(found),
        *claims.unexplained(found),
        *claims.refused(found),
        *claims.errors(found, {one.subject.error for one in repaired if one.subject is not None}),
        *claims.empty_answers(found),
        *claims.verdict_on_all(found),
        *repaired,
        *pointed_at(found, history),
        *unrecovered(found),
        *claims.repeats(found),
    ]
