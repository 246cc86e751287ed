"""The writer without a model: a card, every line of it a claim `{text, k, n, call_ids, kind}`.

What is counted, by kind:

* `failure`: k of the n calls of this tool that were counted so far failed with this error; `counts["recovered"]` of
  them worked in the same conversation, runs of failures once; `call_ids` are the newest of the k;
* `silent`: the same of answers that were worth nothing;
* `example`: one call that worked;
* `parameter`: none of n calls went well, all others did (`value_patterns`); `call_ids` are the n;
* `overall`: k of n calls of the window worked; told where it is under 90 %;
* `withheld`: a line of the first two kinds that is in no text, as it did not help (`toolmem.guidance.proof`).

Failures are counted over every call that the guidance was ever written from (`Guidance.history`), the others over the
window. A call went wrong where its recorded flag or the judge says so (`outcomes.went_wrong`).
"""

from __future__ import annotations

from collections.abc import Sequence

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.card_lines import lines
from toolmem.guidance.counted.repair_history import counted
from toolmem.guidance.proof import parted
from toolmem.guidance.shown import BULLET
from toolmem.guidance.statistics import statistics_of
from toolmem.models import Claim, Guidance, Language, RepairHistory, ToolCallResult
from toolmem.protocols import Purpose
from toolmem.providers.tokenizer import estimated_tokens

AUTHOR = "offline/data_driven"
MAX_TOKENS = 300

# Raise it with every change of what a card says: stores have their guidance written anew only under another number.
# tests/snapshots/golden_cards.py holds the cards to this.
DATA_DRIVEN_RULES = 1


class DataDrivenWriter:
    """Implements `GuidanceWriter` without a model, in English or Chinese. A card has at most `max_tokens` tokens."""

    def __init__(self, language: Language = "", *, max_tokens: int = MAX_TOKENS) -> None:
        self._language: Language = language
        self._max_tokens = max_tokens

    @property
    def author(self) -> str:
        return AUTHOR

    @property
    def prompt_version(self) -> str:
        """The version of the rules; another language is another version."""
        return f"{DATA_DRIVEN_RULES}-{self._language}" if self._language else str(DATA_DRIVEN_RULES)

    @property
    def edit_version(self) -> str:
        return self.prompt_version

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        """`compose` for the port; never raises. Of `old` only the history is used, `purpose` not at all."""
        return self.compose(tool_name, calls, old.history if old else None)

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Count the calls `new` on the lines of `old`; `window` gives the examples and the rate."""
        made = self.compose(tool_name, window, old.history)
        return made.model_copy(update={"covered": list(new), "edits": old.edits + 1})

    def compose(self, tool_name: str, calls: Sequence[ToolCallResult], before: RepairHistory | None = None) -> Guidance:
        """The card of `calls` (oldest first, all of one tool). Claims come most valuable first.

        `before`: the history of the tool's guidance so far, on which failures and repairs are counted. Needs calls
        with a seq. A call without an id is named by its place, `#1` being the oldest. Never raises.
        """
        found = analyze(tool_name, calls)
        history = counted(found, before) if calls else before
        told, withheld = parted(lines(found, history, self._language), history) if history is not None else ([], [])
        told = self._within(told)
        return Guidance(
            text="\n".join(BULLET + one.text for one in told),
            claims=[*told, *withheld],
            statistics=statistics_of(calls),
            covered=[call.seq for call in calls if call.seq is not None],
            author=self.author,
            prompt_version=self.prompt_version,
            history=history if all(call.seq is not None for call in calls) else None,
        )

    def _within(self, told: Sequence[Claim]) -> list[Claim]:
        """The first lines that fit; one that is too long gives way to the next."""
        kept: list[Claim] = []
        left = self._max_tokens
        for one in told:
            if (tokens := estimated_tokens(BULLET + one.text)) <= left:
                kept.append(one)
                left -= tokens
        return kept
