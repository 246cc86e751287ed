"""CaptureToolRulesOp: a turn in, rules out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolmem.flow.op import Context, Op
from toolmem.ops.note_demand import kept_calls, said_to_program
from toolmem.ops.turn_outcomes import with_outcomes
from toolmem.ops.workspace_rules import rule_store
from toolmem.readers.plain_text import counted, name_shown, plain_line
from toolmem.readers.weight import aside
from toolmem.rules.capture.hook import Captured, ToolMemoryCaptureHook
from toolmem.rules.turns import Turn, read_turn

if TYPE_CHECKING:
    from toolmem.ops.asked_notes import AskedNotes
    from toolmem.rules.rule_store import RuleStore

_TURN = ("user_message", "tool_calls", "session_id", "tools")


class CaptureToolRulesOp(Op):
    """Keep what a turn gives: standing demands of the user as critical rules, repeated failures as normal ones.

    Where the outcome of a call is not given, the rule-based check reads it from the output.
    Demands on this session alone are answered in `session` and not stored. A sentence that takes an instruction back,
    or a newer one on the same target, lets a rule hold no longer: `withdrawn` and `superseded`. `notes` is what to tell
    the user of all these.
    `rules.capture` of the configuration switches it off; `model` has the op's model read the message as well, in any
    language: what it notes is checked as a note of `note_demand` and `lift_demand` is, and stands in the place of what
    these words would give without it. `unasked` says why no model was asked, or why its reply counts for nothing.
    """

    reads = ("workspace_id",)
    optional = _TURN
    leaves = ("captured_rules",)

    async def execute(self, context: Context) -> None:
        given = {key: context[key] for key in _TURN if key in context}
        turn = await aside(given, lambda: with_outcomes(read_turn(given)))
        settings = context.services.settings.rules
        rules = await rule_store(context.services, self, context.workspace)
        hook = ToolMemoryCaptureHook(rules, nouns=settings.nouns, enabled=bool(settings.capture))
        asked = await _noted(context, rules, turn) if settings.capture == "model" else None
        captured = await hook.after_turn(turn, noted=asked.kept if asked else ())
        if asked:
            asked.tell(captured)
        context["captured_rules"] = captured.rules
        context.response.metadata.update(
            rules=[rule.model_dump(mode="json") for rule in captured.rules],
            session=[{"tool_name": each.tool_name, "rule": each.rule} for each in captured.session],
            notes=captured.notes,
            too_long=captured.too_long,
            deleted=[{"tool_name": draft.tool_name, "rule": draft.rule} for draft in captured.deleted],
            withdrawn=[rule.model_dump(mode="json") for rule in captured.withdrawn],
            superseded=[rule.model_dump(mode="json") for rule in captured.superseded],
            failures=captured.failures,
            **({"unasked": captured.unasked} if captured.unasked else {}),
        )
        context.response.success = not captured.failures
        context.response.metadata["partial"] = bool(captured.failures and captured.rules)
        context.response.answer = _in_words(captured) if hook.enabled else "Capture is switched off"


async def _noted(context: Context, rules: RuleStore, turn: Turn) -> AskedNotes:
    """What the op's model notes of the message, kept, proposed or refused."""
    # Not at the top: no start waits for what reads notes.
    from toolmem.ops.asked_notes import ask_for_notes, without_secrets
    from toolmem.rules.lifted_demands import answer_call
    from toolmem.rules.noted_demands import DemandContext

    spoken = without_secrets(turn)
    store = await context.services.store(context.op)
    road = DemandContext(
        said_to_program(rules, spoken.user_message),
        [*turn.tools, *turn.ran],
        turn.session_id,
        noted_by="rules.capture: model",
        speaker="program",
        kept=await kept_calls(store, context.workspace),
    )
    return await ask_for_notes(context, spoken, lambda name, given: answer_call(rules, name, given, road))


def _in_words(captured: Captured) -> str:
    tools = ", ".join(dict.fromkeys(name_shown(rule.tool_name) for rule in captured.rules))
    parts = [counted(len(captured.rules), "rule") + (f" ({tools})" if tools else "")]
    waiting = sum(rule.status == "proposed" for rule in captured.rules)
    parts += [f"waiting for approval: {waiting}"] if waiting else []
    parts += [f"withdrawn: {len(captured.withdrawn)}"] if captured.withdrawn else []
    parts += [f"superseded: {len(captured.superseded)}"] if captured.superseded else []
    parts += captured.notes
    if captured.too_long:
        parts.append(f"{counted(captured.too_long, 'sentence')} too long for a rule")
    if captured.deleted:
        parts.append(f"{len(captured.deleted)} not kept because the user had deleted it")
    if captured.failures:
        parts.append(f"{len(captured.failures)} failed")
    return plain_line(f"Captured {'; '.join(parts)}")
