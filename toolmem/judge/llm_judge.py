"""The judge that asks a model: prompt, reply, verdict."""

from __future__ import annotations

import logging
from pathlib import Path

from toolmem.errors import ModelError, ReplyUnreadable
from toolmem.judge.verdict_reply import ReadReply, read_verdict
from toolmem.models import JudgeIdentity, Language, ToolCallResult, ToolSchema, Verdict
from toolmem.protocols import LLM, Completion, Judge, Purpose, Tokenizer
from toolmem.readers.plain_text import name_shown
from toolmem.readers.prompt_templates import EVALUATE, REPAIR_EVALUATION, Prompts, PromptTemplate, load_prompts
from toolmem.readers.prompt_text import as_json, cut_middle, fit, seconds_text

logger = logging.getLogger("toolmem.judge")

MAX_PROMPT_CHARACTERS = 24_000
LEAST_FIELD_CHARACTERS = 200  # of each long field, however small the limit
SHOWN_REPLY_CHARACTERS = 4_000  # of an unreadable reply that the model is shown again

# The form that read_verdict reads. Users' templates that do not show it get it at their end.
_MARKERS = ("```json", '"score"')
_FORM = '```json\n{"summary": "...", "evaluation": "...", "score": <0.0 or 1.0>}\n```'


def judge_prompts(prompt_path: str | Path | None = None) -> Prompts:
    """The prompts of the judge, a user's file over ours. Raises ConfigError."""
    return load_prompts(Path(__file__).with_name("prompts.yaml"), prompt_path)


class LLMJudge:
    """Implements `protocols.Judge` by one request to `llm` per call, and a second one where the reply cannot be read.

    `fallback` gives the verdict where `llm` sends nothing (dry_run); it is signed with the dry run's identity.
    `execution_check` (default: `fallback`) says whether the call itself went wrong where the recorded flag does
    not, and of which class its error is: it must not cost requests. `max_prompt_characters` bounds the prompt; the
    longest fields are cut in the middle, visibly, down to 200 characters each.

    Errors that may pass are not tried again here: that is the backend's work, and it knows the pacing.
    """

    def __init__(
        self,
        llm: LLM,
        prompts: Prompts,
        tokenizer: Tokenizer,
        *,
        language: Language = "",
        max_prompt_characters: int = MAX_PROMPT_CHARACTERS,
        fallback: Judge | None = None,
        execution_check: Judge | None = None,
    ) -> None:
        self._llm = llm
        self._tokenizer = tokenizer
        self._template = _with_form(prompts.template(EVALUATE, language))
        self._repair = prompts.template(REPAIR_EVALUATION, language)
        self._space = max_prompt_characters - self._template.size
        self._fallback = fallback
        self._check = execution_check or fallback
        self._identity = JudgeIdentity(backend=llm.backend, model=llm.model, prompt_version=self._template.version)

    @property
    def identity(self) -> JudgeIdentity:
        return self._identity

    @property
    def paid(self) -> bool:
        """True but for a dry run: its verdicts cost nothing and can be made again at any time."""
        return self._llm.backend != "dry_run"

    def prompt(self, call: ToolCallResult, schema: ToolSchema | None) -> str:
        """The evaluation prompt, as it is sent. It shows "```json" and `"score"` whatever the call holds."""
        values = {
            "tool_name": name_shown(call.tool_name),
            "success_flag": None if call.success is None else str(call.success).lower(),
            "time_cost": seconds_text(call.time_cost),
            "token_cost": None if call.token_cost is None else str(call.token_cost),
            "input_params": as_json(call.input),
            "output": call.output,
            "tool_schema": None if schema is None else _schema_text(schema),
            "context": call.context or None,
        }
        known = {name: value for name, value in values.items() if value is not None}
        cut = fit(known, max(self._space, LEAST_FIELD_CHARACTERS * len(known)))
        return self._template.render({name: cut.get(name) for name in values})

    def prompt_tokens(self, call: ToolCallResult, schema: ToolSchema | None) -> int:
        """What the first request for this call would cost in prompt tokens."""
        return self._tokenizer.count(self.prompt(call, schema))

    async def judge(self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose) -> Verdict:
        """Raises ReplyUnreadable where the reply cannot be read and the second one neither, else what `llm` raises."""
        prompt = self.prompt(call, schema)
        completion = await self._llm.complete(prompt, purpose, json_reply=True)
        if not completion.sent:
            return await self._judge_without_model(call, schema, purpose)
        read = await self._read(completion, prompt, purpose)
        failed, error_class = await self._execution(call, schema, purpose)
        return Verdict(
            summary=read.summary,
            evaluation=read.evaluation,
            score=read.score,
            execution_failed=failed,
            error_class=error_class,
            judge=self._identity,
        )

    async def _read(self, completion: Completion, prompt: str, purpose: Purpose) -> ReadReply:
        try:
            return read_verdict(completion.text)
        except ReplyUnreadable as first:
            logger.debug("%s: unreadable reply (%s): %s", self._llm.model, first, first.reply)
            shown = cut_middle(first.reply, SHOWN_REPLY_CHARACTERS)
            repair = self._repair.render({"prompt": prompt, "reply": shown, "problem": str(first)})
        second = await self._llm.complete(repair, purpose, json_reply=True)
        try:
            return read_verdict(second.text)
        except ReplyUnreadable as error:
            logger.debug("%s: unreadable again (%s): %s", self._llm.model, error, error.reply)
            message = f"{self._llm.model}: the reply cannot be read, asked twice: {error}"
            raise ReplyUnreadable(message, reply=error.reply) from None

    async def _judge_without_model(self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose) -> Verdict:
        if self._fallback is None:
            raise ModelError(f"{self._llm.backend} sends nothing, and there is no other judge to give a verdict")
        verdict = await self._fallback.judge(call, schema, purpose)
        return verdict.model_copy(update={"judge": self._identity})

    async def _execution(
        self, call: ToolCallResult, schema: ToolSchema | None, purpose: Purpose
    ) -> tuple[bool | None, str]:
        """Did the call itself go wrong, and how? The recorded flag where it is known, else the check's opinion."""
        failed = None if call.success is None else not call.success
        if self._check is None or failed is False:
            return failed, ""
        opinion = await self._check.judge(call, schema, purpose)
        failed = opinion.execution_failed if failed is None else failed
        return failed, opinion.error_class if failed else ""


def _with_form(template: PromptTemplate) -> PromptTemplate:
    return template if template.shows(*_MARKERS) else template.followed_by(_FORM)


def _schema_text(schema: ToolSchema) -> str:
    body = {"description": schema.description, "parameters": schema.parameters}
    return as_json({name: value for name, value in body.items() if value or name == "parameters"})
