"""Guidance written by a model, with the counted claims of the data-driven writer beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from toolmem.errors import ModelError, ReplyUnreadable
from toolmem.guidance.outcomes import went_wrong
from toolmem.guidance.shown import guidance_text, with_card, without_card
from toolmem.guidance.statistics import statistics_of
from toolmem.guidance.writer_reply import apply_edits, numbered, parse_edits, read_edits_block, read_guidance
from toolmem.models import Guidance, Language, ToolCallResult, ToolStatistics
from toolmem.protocols import LLM, Completion, GuidanceWriter, Purpose, Tokenizer
from toolmem.readers.error_messages import telling_line
from toolmem.readers.plain_text import name_shown, shown
from toolmem.readers.prompt_templates import SUMMARIZE, UPDATE, Prompts, PromptTemplate, load_prompts
from toolmem.readers.prompt_text import as_json, cut_middle, fit, seconds_text

logger = logging.getLogger("toolmem.guidance")

MAX_PROMPT_CHARACTERS = 48_000
LEAST_CALL_CHARACTERS = 160  # of each call's texts, however many there are: no call is dropped from the prompt
MAX_TOKENS = 300  # of guidance, failures and examples with it
MAX_ERROR_CHARACTERS = 200  # of the line of a failed output that tells what went wrong
MAX_INPUT_CHARACTERS = 1_000  # of one call; its verdict says the rest

# The form that read_guidance reads. Users' templates that do not show it get it at their end.
_MARKER = "```txt"
_FORM = "```txt\n...\n```"
_EDIT_FORM = "```txt\n3: new text of line 3\n-5\n+3: a line added behind it\n```"


def writer_prompts(prompt_path: str | Path | None = None) -> Prompts:
    """The prompts of the writer, a user's file over ours. Raises ConfigError."""
    return load_prompts(Path(__file__).with_name("prompts.yaml"), prompt_path)


class LLMWriter:
    """Implements `GuidanceWriter` by one request to `llm` per tool.

    The text is the model's, cleaned and bounded (`shown.guidance_text`). `evidence` (the data-driven writer; it must
    not cost requests) gives the claims and counted repairs beside it, and the text where `llm` sends nothing (dry_run);
    `prompt_tokens` is then the count of a prompt that holds verdicts of the judge's fallback instead of the model's,
    an estimate.
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
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """`max_tokens`: of a tool's guidance, of which failures and examples get what the model's text leaves."""
        self._llm = llm
        self._tokenizer = tokenizer
        self._language: Language = language
        self._template = _with_form(prompts.template(SUMMARIZE, language), _FORM)
        self._update = _with_form(prompts.template(UPDATE, language), _EDIT_FORM)
        self._max_prompt_characters = max_prompt_characters
        self._evidence = evidence
        self._max_tokens = max_tokens

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
        text = self._read(completion, read_guidance, "the reply cannot be read")
        counted = None if self._evidence is None else await self._evidence.write(tool_name, calls, old, purpose)
        covered = [call.seq for call in calls if call.seq is not None]
        guidance = self._guidance(tool_name, text, counted, calls, covered)
        return guidance.model_copy(update={"prompt_tokens": completion.prompt_tokens})

    async def edit(
        self, tool_name: str, window: Sequence[ToolCallResult], new: Sequence[int], old: Guidance, purpose: Purpose
    ) -> Guidance:
        """Raises ReplyUnreadable where the edits cannot be read or made, else what `llm` raises.

        `prompt_tokens` stays that of a summary of `window`, counted by the tokenizer.
        """
        fresh = [call for call in window if call.seq in set(new)]
        before = without_card(guidance_text(old.text), self._language)
        completion = await self._llm.complete(self.update_prompt(tool_name, before, fresh), purpose)

        def edited(reply: str) -> str:
            return apply_edits(before, parse_edits(read_edits_block(reply)))

        text = self._read(completion, edited, "the edits cannot be used")
        counted = None if self._evidence is None else await self._evidence.edit(tool_name, window, new, old, purpose)
        guidance = self._guidance(tool_name, text, counted, window, new)
        tokens = self.prompt_tokens(tool_name, window)
        edits = {"prompt_version": self.edit_version, "prompt_tokens": tokens, "edits": old.edits + 1}
        return guidance.model_copy(update=edits)

    def _read(self, completion: Completion, read: Callable[[str], str], what: str) -> str | None:
        """The model's text, cleaned; None where nothing was sent. Raises ReplyUnreadable."""
        if not completion.sent:
            return None
        try:
            if text := guidance_text(read(completion.text)):
                return text
            raise ReplyUnreadable("it holds nothing that can be seen")
        except ReplyUnreadable as error:
            logger.debug("%s: %s (%s): %s", self._llm.model, what, error, completion.text)
            raise ReplyUnreadable(f"{self._llm.model}: {what}: {error}", reply=completion.text) from None

    def _guidance(
        self,
        tool_name: str,
        text: str | None,
        counted: Guidance | None,
        window: Sequence[ToolCallResult],
        covered: Sequence[int],
    ) -> Guidance:
        if text is not None:
            told = with_card(text, counted, self._language, self._max_tokens)
        elif counted is None:
            raise ModelError(f"{self._llm.backend} sends nothing, and there is no other writer")
        else:
            text = told = counted.text
        return Guidance(
            text=told,
            claims=[] if counted is None else counted.claims,
            history=None if counted is None else counted.history,
            statistics=statistics_of(window),
            covered=list(covered),
            author=self.author,
            prompt_version=self.prompt_version,
            update_tokens=self.update_tokens(tool_name, text),
        )


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
        ("error", cut_middle(shown(telling_line(call.output)), MAX_ERROR_CHARACTERS) if went_wrong(call) else ""),
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
