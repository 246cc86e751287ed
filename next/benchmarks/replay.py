"""What the guard would have said to recorded calls, each treated as it ran.

The calls of a conversation in their order; other conversations as of those that had ended. Nothing
is known at the start, and nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from toolmem.guard.known_names import KnownNames, statement_in
from toolmem.guard.repeats import ConversationFailures, check_repeat, ended_as, identity, take
from toolmem.models.calls import ToolCallResult
from toolmem.text.stopped_calls import was_stopped
from toolmem.view.effects import CallEffects


class Replay(Struct, kw_only=True):
    """Counts, the last two by kind of finding: `repeat` and `known_name`."""

    calls: int = 0
    failures: int = 0
    flagged: Counter[str] = Counter()
    wrong: Counter[str] = Counter()  # flagged calls that worked


def replay(calls: Iterable[ToolCallResult]) -> Replay:
    """Replay calls in order of time."""
    done = Replay(flagged=Counter(), wrong=Counter())
    conversations: dict[str, ConversationFailures] = {}
    names: dict[str, KnownNames] = {}
    forgiven: set[str] = set()
    ordered = sorted(enumerate(calls), key=lambda each: (each[1].create_time, each[0]))
    for index, call in ordered:
        if was_stopped(call.output):
            continue
        failed = None if call.success is None else not call.success
        done.calls += 1
        done.failures += failed is True
        alone = call.conversation_id or f"\0{index}"
        held = conversations.setdefault(alone, ConversationFailures())
        known = names.setdefault(alone, KnownNames())
        given = call.input if isinstance(call.input, dict) else {"": call.input}
        effects = CallEffects(call.tool_name, given)
        key, statement = identity(call.tool_name, call.input, b""), statement_in(call.input)
        found = []
        if key in held.failures:
            outside = effects.asks_outside()
            repeats = check_repeat(held, key, forgiven, "enforce", outside, True)
            found += [each for each in repeats if "wait" not in each.text or each.action == "deny"]
        found += list(known.check(statement, "enforce"))[:1] if statement else []
        kinds = {each.kind for each in found}
        done.flagged.update(kinds)
        done.wrong.update(kinds if failed is False else ())
        ended = ended_as(effects, call.output, failed=bool(failed))
        worked = take(held, key, ended, failed=bool(failed), call_id=str(index))
        if worked:
            forgiven.add(worked)
        if statement and failed is not None:
            known.learn(statement, call.output, failed=failed)
    return done
