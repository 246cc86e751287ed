"""What an agent, a dump or a report gets of one tool: a ToolMemory made of what the store keeps."""

from __future__ import annotations

from typing import Any

from toolmem.guidance.shown import WITHHELD, guidance_shown
from toolmem.guidance.skip import count_covered, count_new
from toolmem.guidance.statistics import Measured, measured
from toolmem.models import (
    CLAIM_DATA,
    ToolMemory,
    ToolStatistics,
)
from toolmem.stored import StoredMemory


def tool_memory(
    stored: StoredMemory, include_calls: bool = False, figures: Measured | None = None, *, upkeep: bool = False
) -> ToolMemory:
    """The memory of one tool. `figures`: of its kept calls, where they were counted already.

    `score` averages the kept calls that were handed over (None where none has a score). `metadata` is JSON:

    * `statistics`: of the kept calls; `window`: which calls these are (`first_seq`, `last_seq`, `calls`, of `kept`);
    * `lifetime`: counters that never shrink, with the rates that follow from them, and a `judges_note` where scores of
      calls outside the window are among them: who gave those is not kept;
    * `guidance_statistics`, `claims`, `prompt_version`, `prompt_tokens`, `guidance_created_at`: of the guidance
      (None, or an empty list, where there is none);
    * `covered`, `new`, `unjudged`: kept calls that guidance covers, that it does not cover yet, that have no verdict;
    * `judges`: who scored, and `judges_note` where there is more than one and the average mixes them;
    * `upkeep`, where it is asked for: what another store has to know of the guidance for the next summary; the claims
      then hold what their sentences are made of as well, and those that are withheld are among them.
    """
    record = stored.record
    guidance = guidance_shown(record.guidance) if record.guidance is not None else None
    statistics, window, lifetime = measured(stored) if figures is None else figures
    hidden = set() if upkeep else CLAIM_DATA
    claims = [each for each in guidance.claims if upkeep or each.kind != WITHHELD] if guidance else []
    metadata: dict[str, Any] = {
        "statistics": statistics.model_dump(mode="json"),
        "window": dict(window),
        "lifetime": dict(lifetime),
        "guidance_statistics": guidance.statistics.model_dump(mode="json") if guidance else None,
        "claims": [claim.model_dump(mode="json", exclude=hidden) for claim in claims],
        "prompt_version": guidance.prompt_version if guidance else None,
        "prompt_tokens": guidance.prompt_tokens if guidance else 0,
        "guidance_created_at": guidance.created_at.isoformat() if guidance and guidance.created_at else None,
        "covered": count_covered(record),
        "new": count_new(record),
        "unjudged": len(record.unjudged),
        "judges": [*statistics.judges],
    }
    if len(statistics.judges) > 1:
        metadata["judges_note"] = mixing_note(statistics)
    if upkeep and guidance is not None:
        metadata["upkeep"] = guidance.upkeep()
    return ToolMemory(
        workspace_id=record.workspace,
        memory_id=record.memory_id,
        when_to_use=record.tool_name,
        content=guidance.text if guidance else "",
        score=statistics.avg_score,
        time_created=record.time_created,
        time_modified=record.time_modified,
        author=guidance.author if guidance else "",
        tool_call_results=list(stored.calls) if include_calls else [],
        metadata=metadata,
    )


def mixing_note(statistics: ToolStatistics) -> str:
    """A sentence that says whose scores an average mixes; "" where it mixes none."""
    if len(statistics.judges) < 2:
        return ""
    return f"the average score mixes {len(statistics.judges)} judges: {', '.join(statistics.judges)}"
