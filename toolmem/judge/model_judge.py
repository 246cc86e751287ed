"""The judge that asks a model, once for each call, and again if the reply is unreadable.

The model decides whether the call was useful. Whether it failed, and its error class, come from the
rule-based check, so that figures and cards mean the same under every judge.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from toolmem.judge.check import check
from toolmem.judge.reply import ReadVerdict, ReplyUnreadable, read_verdict
from toolmem.llm.models import DryRunModel
from toolmem.llm.prompts import as_json, cut_longest, cut_middle, load_template
from toolmem.models.calls import JudgeIdentity, ToolCallResult, Verdict
from toolmem.models.protocols import ChatModel
from toolmem.models.tools import ToolSchema

MAX_PROMPT = 24_000  # characters; the longest fields are cut in the middle
SHOWN_REPLY = 4_000  # characters of an unreadable reply that the model is shown again
_PROMPTS = str(Path(__file__).with_name("prompts.yaml"))
_FORM = (
    'Reply only:\n```json\n{{"summary": "...", "evaluation": "...", "score": <0.0 or 1.0>}}\n```'
)


class ModelJudge:
    """The `Judge` that asks a model. `prompt_path`: a file with the user's own prompts."""

    asks_model = True

    def __init__(self, model: ChatModel, language: str = "", prompt_path: str = "") -> None:
        template = load_template(_PROMPTS, "evaluate_tool_call_prompt", language, prompt_path)
        self._template = template.ending_in(_FORM, "```json", '"score"')
        self._repair = load_template(_PROMPTS, "repair_evaluation_prompt", language, prompt_path)
        self._model = model
        self.identity = JudgeIdentity(model.backend, model.model, self._template.version)

    def prompt(self, call: ToolCallResult, schema: ToolSchema | None) -> str:
        """Return the prompt that asks the model to judge this call."""
        tool = schema and {"description": schema.description, "parameters": schema.parameters}
        texts = {
            "tool_name": call.tool_name,
            "success_flag": "" if call.success is None else str(call.success).lower(),
            "time_cost": "" if call.time_cost is None else f"{call.time_cost:.3g}",
            "token_cost": "" if call.token_cost is None else str(call.token_cost),
            "tool_schema": as_json(tool or ""),
            "context": call.context,
            "input_params": as_json(call.input),
            "output": call.output,
        }
        fitting = cut_longest(texts, max(MAX_PROMPT - len(self._template.text), 2_000))
        required = ("tool_name", "input_params", "output")  # shown even where they are empty
        known = {name: text for name, text in fitting.items() if text or name in required}
        return self._template.render(known)

    async def judge(self, call: ToolCallResult, schema: ToolSchema | None) -> Verdict:
        """Ask the model, twice if a reply is unreadable. Raises ModelError or ReplyUnreadable."""
        prompt = self.prompt(call, schema)
        reply = await self._model.complete(prompt, json_reply=True)
        try:
            read = read_verdict(reply)
        except ReplyUnreadable as error:
            read = await self._ask_again(prompt, reply, str(error))
        return replace(check(call, schema), judge=self.identity, **read._asdict())

    async def _ask_again(self, prompt: str, reply: str, problem: str) -> ReadVerdict:
        shown = cut_middle(reply, SHOWN_REPLY)
        again = self._repair.render({"prompt": prompt, "reply": shown, "problem": problem})
        try:
            return read_verdict(await self._model.complete(again, json_reply=True))
        except ReplyUnreadable as error:
            problem = f"{self.identity.model}: the reply cannot be read, asked twice: {error}"
            raise ReplyUnreadable(problem) from None


class DryRunJudge:
    """Counts the prompts that a model would get; the verdicts come from the rule-based check."""

    asks_model = False

    def __init__(self, judge: ModelJudge, model: DryRunModel) -> None:
        self._judge = judge
        self._model = model
        self.identity = judge.identity

    def judge(self, call: ToolCallResult, schema: ToolSchema | None) -> Verdict:
        self._model.count(self._judge.prompt(call, schema))
        return replace(check(call, schema), judge=self.identity)
