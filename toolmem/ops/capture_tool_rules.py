"""CaptureToolRulesOp: a turn in, rules out."""

from __future__ import annotations

from toolmem.flow.op import Context, Op
from toolmem.ops.turn_outcomes import with_outcomes
from toolmem.ops.workspace_rules import rule_store
from toolmem.readers.plain_text import counted, name_shown, plain_line
from toolmem.readers.weight import aside
from toolmem.rules.capture.hook import Captured, ToolMemoryCaptureHook
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.turns import read_turn

_TURN = ("user_message", "tool_calls", "session_id", "tools")


class CaptureToolRulesOp(Op):
    """Keep what a turn gives: standing demands of the user as critical rules, repeated failures as normal ones.

    Where the outcome of a call is not given, the rule-based check reads it from the output.
    Demands on this session alone are answered in `session` and not stored. A sentence that takes an instruction back,
    or a newer one on the same target, lets a rule hold no longer: `withdrawn` and `superseded`. `notes` is what to tell
    the user of all these.
    `rules.capture` of the configuration switches it off; `model` asks the op's model about sentences that may demand
    something and that no cue reads, in any language: what it finds is proposed, and holds once a person approves it.
    With `rules.compile: llm` the model is asked for a condition of what only reminds; that is proposed too.
    Where it cannot be asked, `unasked` says why.
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
        asked: list[RuleDraft] = []
        unasked = ""
        if settings.capture == "model":
            # Not at the top: no start waits for the cues that it reads.
            from toolmem.ops.asked_instructions import ask_for_instructions

            asked, unasked = await ask_for_instructions(context, turn)
        captured = await hook.after_turn(turn, asked)
        if settings.compile == "llm" and captured.rules:
            from toolmem.ops.asked_conditions import ask_for_conditions

            compiled, why = await ask_for_conditions(context, rules, captured.rules, turn)
            await hook.keep(compiled, captured)
            unasked = "; ".join(dict.fromkeys(each for each in (unasked, why) if each))
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
            **({"unasked": unasked} if unasked else {}),
        )
        context.response.success = not captured.failures
        context.response.metadata["partial"] = bool(captured.failures and captured.rules)
        context.response.answer = _in_words(captured) if hook.enabled else "Capture is switched off"


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
