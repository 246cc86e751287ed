"""Guidance written by a model, with the counted claims of the data-driven writer beside it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from toolmem.config.prompts import (
    SUMMARIZE,
    UPDATE,
    Prompts,
    PromptTemplate,
    as_json,
    cut_middle,
    fit,
    load_prompts,
    seconds_text,
)
from toolmem.errors import ModelError, ReplyUnreadable
from toolmem.guidance.counted.incremental import UnusableEdits, apply_edits, numbered, parse_edits
from toolmem.guidance.outcomes import went_wrong
from toolmem.guidance.reply import read_edits_block, read_guidance
from toolmem.guidance.shown import guidance_text, with_figures, without_figures
from toolmem.guidance.statistics import statistics_of
from toolmem.models import Guidance, Language, ToolCallResult, ToolStatistics
from toolmem.protocols import LLM, Clock, GuidanceWriter, Purpose, Tokenizer
from toolmem.readers.plain_text import name_shown, shown

logger = logging.getLogger("toolmem.guidance")

MAX_PROMPT_CHARACTERS = 48_000
LEAST_CALL_CHARACTERS = 160  # of each call's texts, however many there are: no call is dropped from the prompt
MAX_INPUT_CHARACTERS = 1_000  # of one call; its verdict says the rest

# The form that read_guidance reads. Users' templates that do not show it get it at their end.
_MARKER = "```txt"
_FORM = "```txt\n...\n```"
_EDIT_FORM = "```txt\n3: new text of line 3\n-5\n+3: a line added behind it\n```"


def writer_prompts(prompt_path: str | Path | None = None) -> Prompts:
    """The prompts of the writer, a user's file over ours. Raises ConfigError."""
    return load_prompts(Path(__file__).with_name("prompts.yaml"), prompt_path)


class LLMWriter:
    """Implements `ports.GuidanceWriter` by one request to `llm` per tool.

    The text is the model's, cleaned and bounded (`shown.guidance_text`). `evidence` (the data-driven writer; it must
    not cost requests) gives the claims, statistics and counted repairs beside it; without it there are none.
    `fallback` (default: `evidence`) writes the text where `llm` sends nothing (dry_run); `prompt_tokens` is then the
    count of a prompt that holds verdicts of the fallback's kind instead of the model's, an estimate.
    """

    def __init__(
        self,
        llm: LLM,
        prompts: Prompts,
        tokenizer: Tokenizer,
        *,
        language: Language = "",
        max_prompt_characters: int = MAX_PROMPT_CHARACTERS,
        evidence: GuidanceWriter | None = None,
        fallback: GuidanceWriter | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._llm = llm
        self._tokenizer = tokenizer
        self._language: Language = language
        self._template = _with_form(prompts.template(SUMMARIZE, language), _FORM)
        self._update = _with_form(prompts.template(UPDATE, language), _EDIT_FORM)
        self._max_prompt_characters = max_prompt_characters
        self._evidence = evidence
        self._fallback = fallback or evidence
        self._clock = clock

    @property
    def author(self) -> str:
        return f"{self._llm.backend}/{self._llm.model}"

    @property
    def prompt_version(self) -> str:
        return self._template.version

    @property
    def edit_version(self) -> str:
        """Both prompts stand behind edited guidance; where they come from two files, both versions are told."""
        versions = dict.fromkeys((self._template.version, self._update.version))
        return "+".join(versions)

    def prompt(self, tool_name: str, calls: Sequence[ToolCallResult]) -> str:
        """The summary prompt, as it is sent. It shows "```txt" whatever the calls hold."""
        return usage_prompt(self._template, tool_name, calls, self._max_prompt_characters)

    def prompt_tokens(self, tool_name: str, calls: Sequence[ToolCallResult]) -> int:
        """What a summary of these calls would cost in prompt tokens."""
        return self._tokenizer.count(self.prompt(tool_name, calls))

    def update_prompt(self, tool_name: str, guidance: str, new: Sequence[ToolCallResult]) -> str:
        """The incremental prompt: the guidance as numbered lines, and the new calls alone."""
        return usage_prompt(self._update, tool_name, new, self._max_prompt_characters, numbered(guidance))

    def update_tokens(self, tool_name: str, guidance: str) -> int:
        """Prompt tokens of an incremental summary beside those of its calls."""
        return self._tokenizer.count(self.update_prompt(tool_name, guidance, ()))

    async def write(
        self, tool_name: str, calls: Sequence[ToolCallResult], old: Guidance | None, purpose: Purpose
    ) -> Guidance:
        """Raises ReplyUnreadable where the reply cannot be read, else what `llm` raises. `old` is not shown to it."""
        completion = await self._llm.complete(self.prompt(tool_name, calls), purpose)
        text = self._read(completion.text) if completion.sent else None
        counted = None if self._evidence is None else await self._evidence.write(tool_name, calls, old, purpose)
        if text is None:
            text = await self._text_without_model(tool_name, calls, old, purpose, counted)
        return Guidance(
            text=with_figures(text, counted, self._language),
            claims=[] if counted is None else counted.claims,
            history=None if counted is None else counted.history,
            statistics=statistics_of(calls) if counted is None else counted.statistics,
            covered=[call.seq for call in calls if call.seq is not None],
            author=self.author,
            prompt_version=self.prompt_version,
            prompt_tokens=completion.prompt_tokens,
            update_tokens=self.update_tokens(tool_name, text),
            created_at=self._clock.now() if self._clock is not None else None,
        )

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Raises UnusableEdits where the edits cannot be read or made, else what `llm` raises.

        Where `llm` sends nothing, the text is that of `fallback`'s editor, which sees what the prompt held.
        `prompt_tokens` stays that of a summary of `window`, counted by the tokenizer.
        """
        fresh = [call for call in window if call.seq in set(new)]
        before = without_figures(guidance_text(old.text), self._language)
        completion = await self._llm.complete(self.update_prompt(tool_name, before, fresh), purpose)
        text = self._edited(completion.text, before) if completion.sent else None
        counted = None if self._evidence is None else await self._evidence.edit(tool_name, window, new, old, purpose)
        if text is None:
            if self._fallback is None:
                raise ModelError(f"{self._llm.backend} sends nothing, and there is no other writer")
            same = counted is not None and self._fallback is self._evidence
            stand_in = counted if same else await self._fallback.edit(tool_name, window, new, old, purpose)
            text = old.text if stand_in is None else stand_in.text
        return Guidance(
            text=with_figures(text, counted, self._language),
            claims=[] if counted is None else counted.claims,
            history=None if counted is None else counted.history,
            statistics=statistics_of(window),
            covered=list(new),
            author=self.author,
            prompt_version=self.edit_version,
            prompt_tokens=self.prompt_tokens(tool_name, window),
            update_tokens=self.update_tokens(tool_name, text),
            edits=old.edits + 1,
            created_at=self._clock.now() if self._clock is not None else None,
        )

    def _edited(self, reply: str, guidance: str) -> str:
        try:
            return _cleaned(apply_edits(guidance, parse_edits(read_edits_block(reply))), reply)
        except ReplyUnreadable as error:
            logger.debug("%s: unusable edits (%s): %s", self._llm.model, error, reply)
            raise UnusableEdits(f"{self._llm.model}: the edits cannot be used: {error}", reply=reply) from None

    def _read(self, reply: str) -> str:
        try:
            return _cleaned(read_guidance(reply), reply)
        except ReplyUnreadable as error:
            logger.debug("%s: unreadable reply (%s): %s", self._llm.model, error, reply)
            message = f"{self._llm.model}: the reply cannot be read: {error}"
            raise ReplyUnreadable(message, reply=reply) from None

    async def _text_without_model(
        self,
        tool_name: str,
        calls: Sequence[ToolCallResult],
        old: Guidance | None,
        purpose: Purpose,
        counted: Guidance | None,
    ) -> str:
        if counted is not None and self._fallback is self._evidence:
            return counted.text
        if self._fallback is None:
            raise ModelError(f"{self._llm.backend} sends nothing, and there is no other writer")
        return (await self._fallback.write(tool_name, calls, old, purpose)).text


def _cleaned(text: str, reply: str) -> str:
    cleaned = guidance_text(text)
    if not cleaned:
        raise ReplyUnreadable("it holds nothing that can be seen", reply=reply)
    return cleaned


def usage_prompt(
    template: PromptTemplate,
    tool_name: str,
    calls: Sequence[ToolCallResult],
    max_characters: int,
    guidance: str | None = None,
) -> str:
    """The summary prompt: every call has its place in it; long texts are cut in the middle, visibly.

    `max_characters` gives way where each call would have less than 160 characters of text. `guidance`: what an
    incremental prompt shows of the old one; it is never cut.
    """
    heads = [_head(call, number) for number, call in enumerate(calls, start=1)]
    bodies = {str(number): _body(call) for number, call in enumerate(calls)}
    name = name_shown(tool_name, LEAST_CALL_CHARACTERS)
    used = template.size + len(name) + len(guidance or "") + sum(len(head) + 2 for head in heads)
    texts = fit(bodies, max(max_characters - used, LEAST_CALL_CHARACTERS * len(calls)))
    blocks = [f"{head}\n{body}" for head, body in zip(heads, texts.values(), strict=True)]
    return template.render(
        {
            "tool_name": name,
            "guidance": guidance,
            "call_summaries": "\n".join(blocks),
            "statistics": _figures(statistics_of(calls)),
        }
    )


def _with_form(template: PromptTemplate, form: str) -> PromptTemplate:
    return template if template.shows(_MARKER) else template.followed_by(form)


def _head(call: ToolCallResult, number: int) -> str:
    """`#3 score=0.0 failed error=timeout seconds=1.5 tokens=88`; what is unknown is left out."""
    parts = [f"#{number}"]
    if call.score is not None:
        parts.append(f"score={call.score:.1f}")
    wrong = went_wrong(call)
    if wrong:
        parts.append("failed")
    if wrong and call.error_class:
        parts.append(f"error={call.error_class}")
    if call.time_cost is not None:
        parts.append(f"seconds={seconds_text(call.time_cost)}")
    if call.token_cost is not None:
        parts.append(f"tokens={call.token_cost}")
    return " ".join(parts)


def _body(call: ToolCallResult) -> str:
    lines = (
        ("input", cut_middle(shown(as_json(call.input)), MAX_INPUT_CHARACTERS)),
        ("summary", shown(call.summary)),
        ("evaluation", shown(call.evaluation)),
    )
    return "\n".join(f"{name}: {text}" for name, text in lines if text)


def _figures(statistics: ToolStatistics) -> str:
    """One line for the users' templates that ask for `{statistics}`."""
    figures = {
        "calls": statistics.calls,
        "success_rate": statistics.success_rate,
        "avg_score": statistics.avg_score,
        "avg_time_cost": statistics.avg_time_cost,
        "avg_token_cost": statistics.avg_token_cost,
    }
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items() if value is not None)
