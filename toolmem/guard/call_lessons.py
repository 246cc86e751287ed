"""What a call that ended leaves for the next ones of its conversation, by its effects and by what it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.guard.effects import CallEffects
from toolmem.guard.failure_output import says_it_changed, says_not_yet, says_tests_failed, without_exit_code
from toolmem.guard.repeats import Ended, StandingFailures, error_id, here_alone, is_transient

_NOTHING_SAID = "no message"


def learn(
    standing: StandingFailures,
    call: str,
    tool_name: str,
    arguments: Any,
    *,
    failed: bool | None,
    output: str,
    call_id: str = "",
    hints: Mapping[str, Any] | None = None,
    began: int | None = None,
) -> None:
    """`call`: its identity. `failed` None: not known, which teaches only that it may have written. `began`: the state
    in which it was started."""
    ended = ended_as(tool_name, arguments, failed=failed, output=output, hints=hints)
    take(standing, call, ended, failed=failed, call_id=call_id, began=began)


def take(
    standing: StandingFailures, call: str, ended: Ended, *, failed: bool | None, call_id: str, began: int | None
) -> None:
    """As `learn`, of what was read of the call."""
    standing.unwatched |= ended.left_running
    if failed is None:
        standing.state += ended.changes
        return
    standing.ended(call, ended, failed=failed, call_id=call_id, began=began)


def ended_as(
    tool_name: str, arguments: Any, *, failed: bool | None, output: str, hints: Mapping[str, Any] | None = None
) -> Ended:
    """What a call that ran tells by its input and its output, whatever its conversation knows."""
    call = CallEffects(tool_name, arguments, hints)
    if failed:
        return _failed(call, output)
    return Ended(
        changes=call.may_write() or call.passes_time(),
        shows_files=call.shows_files(),
        casts_doubt=call.moves(),
        left_running=call.starts_background(),
    )


def _failed(call: CallEffects, output: str) -> Ended:
    from toolmem.readers.error_messages import telling_line  # late: a call that is asked about has no output yet

    said, code = without_exit_code(output)
    line = telling_line(said)
    by = ("", *call.programs(), code)
    transient, heals = is_transient(line), says_it_changed(said)
    return Ended(
        error=error_id(call.tool_name, line) if line else here_alone(error_id(call.tool_name, "\0".join(by))),
        line=line or code or _NOTHING_SAID,
        transient=transient,
        changes=call.passes_time() or heals,
        heals=heals,
        left_running=call.starts_background(),
        casts_doubt=call.may_write_in_part(),
        is_edit=call.edits_files(),
        may_differ=says_tests_failed(said) or says_not_yet(said) or (transient and call.command is not None),
    )
