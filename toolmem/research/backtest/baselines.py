"""Texts to compare guidance with. None of them tests anything, merges anything or leaves anything out.

* **counting only**: how often each error message came, and how often each kind of repair was followed by success, two
  lists in one order, most frequent first. That a repair goes with an error is not counted; a repair is told as one of
  any failure, and is read like every other sentence about any failure: the two most frequent ones count.
* **pairs**: how often each kind of repair followed each error message, most frequent first. It does nothing but the
  measured thing, without any other use for a reader: a mark to look up to.

Both are written in the data-driven writer's words and cut to the same budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toolmem.guidance.counted.render import MAX_MENTION, Wording, quoted
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.outcomes import went_wrong
from toolmem.models import Language, ToolCallResult
from toolmem.readers.error_messages import mask, telling_line
from toolmem.research.backtest.opportunities import opportunities


def counting_only(calls: Sequence[ToolCallResult], language: Language = "") -> str:
    """Errors with counts and repairs with counts, of the calls of one tool, not joined; "" where nothing failed."""
    say = Wording(language)
    failures = [mask(telling_line(call.output)) for call in calls if went_wrong(call)]
    asked = opportunities(calls)
    repaired = Counter(_plain(repair) for one in asked for repair in one.repairs)
    lines = [(k, _failed(label, k, len(failures), say)) for label, k in Counter(failures).items()]
    lines += [
        (k, say.say("repair_any", repair=say.repair(repair), k=k, n=len(asked))) for repair, k in repaired.items()
    ]
    return _listed(lines)


def counting_pairs(calls: Sequence[ToolCallResult], language: Language = "") -> str:
    """Pairs of an error and a repair with counts, of the calls of one tool; "" where no failure was repaired."""
    say = Wording(language)
    asked = opportunities(calls)
    of_error = Counter(one.message for one in asked)
    pairs = Counter((one.message, _plain(repair)) for one in asked for repair in one.repairs)
    return _listed(
        [
            (k, say.say("repair", error=_mentioned(label, say), repair=say.repair(repair), k=k, n=of_error[label]))
            for (label, repair), k in pairs.items()
        ]
    )


def _plain(repair: Repair) -> Repair:
    """Without the shapes of a changed value."""
    return Repair(repair.kind, repair.path) if repair.kind == "changed" else repair


def _mentioned(label: str, say: Wording) -> str:
    return quoted(label, MAX_MENTION) if label else say.say("no_output")


def _failed(label: str, k: int, n: int, say: Wording) -> str:
    return say.say("error", message=_mentioned(label, say), cls="", k=k, n=n, example="", recovered="")


def _listed(lines: Sequence[tuple[int, str]]) -> str:
    return "\n".join(f"- {text}" for _, text in sorted(lines, key=lambda line: (-line[0], line[1])))
