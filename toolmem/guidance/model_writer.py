"""Write guidance with a model: its text, then figures, then the card's lines that still fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path

from msgspec.structs import replace

from toolmem.errors import ModelError
from toolmem.guidance.card import CardWriter
from toolmem.guidance.observations import Calls
from toolmem.guidance.shown import BULLET, FIGURES, statistics, sums_of
from toolmem.guidance.wording import Language, Wording
from toolmem.llm.models import DryRunModel
from toolmem.llm.prompts import (
    Template,
    as_json,
    cut_longest,
    cut_middle,
    load_template,
    without_thought,
)
from toolmem.llm.tokens import estimated_tokens, token_weight
from toolmem.models.calls import ToolCallResult, shared_origin
from toolmem.models.guidance import Guidance, Line
from toolmem.models.protocols import ChatModel
from toolmem.text.display import counted, plain, plain_lines, shown
from toolmem.text.error_lines import error_line

MAX_PROMPT = 48_000  # characters
MIN_CALL = 160  # characters that each call has in the prompt, however many there are
MAX_INPUT = 600  # characters
MAX_ERROR = 300  # characters of the end of a failed call's output
MAX_LINE = 140  # characters of an error line
MAX_ANSWER = 100  # characters
MAX_TEXT = 8_000  # characters of a reply
_PROMPTS = str(Path(__file__).with_name("prompts.yaml"))
_FORM = "Reply only:\n```txt\n<the guidance>\n```"
_FENCE = re.compile(r"^[ \t]{0,8}```([A-Za-z0-9_+.#-]*)[ \t]*$", re.MULTILINE)
_MISFIT = re.compile(r"The input does not fit the tool's schema: .*")


class ModelWriter:
    """Writes guidance with a model (see `GuidanceWriter`). Each summary is one request."""

    asks_model = True

    def __init__(
        self,
        model: ChatModel,
        card: CardWriter,
        language: Language = "",
        prompt_path: str = "",
        *,
        max_tokens: int,
    ) -> None:
        def template(key: str) -> Template:
            return load_template(_PROMPTS, key, language, prompt_path).ending_in(_FORM, "```txt")

        self._whole = template("summarize_tool_usage_prompt")
        self._update = template("update_tool_usage_prompt")
        self._model = model
        self._card = card
        self._max_tokens = max_tokens
        self._wording = Wording(language)
        self.author = f"{model.backend}/{model.model}"

    def among(self, calls: Calls) -> ModelWriter:
        """Return a copy that also reads `calls`, made by all tools in this tool's conversations."""
        writer = copy(self)
        writer._card = self._card.among(calls)
        return writer

    def prompt(self, tool_name: str, calls: Calls, old: Guidance | None = None) -> str:
        """Return the prompt for these calls. `old`: the guidance to update; None: write it anew."""
        template = self._whole if old is None else self._update
        bodies = {str(number): body for number, body in enumerate(_bodies(calls))}
        limit = max(MAX_PROMPT - len(template.text), MIN_CALL * len(calls))
        texts = cut_longest(bodies, limit)
        lines = [
            f"{_head(number, call)} {text}"
            for number, (call, text) in enumerate(zip(calls, texts.values(), strict=True), 1)
        ]
        return template.render(
            {
                "tool_name": shown(tool_name)[:MIN_CALL],
                "guidance": None if old is None else old.written,
                "call_summaries": "\n".join(lines),
                "statistics": figures(calls),
            }
        )

    async def write(self, tool_name: str, calls: Calls, old: Guidance | None) -> Guidance:
        """Write guidance from all these calls, not from the old text. Raises ModelError."""
        prompt = self.prompt(tool_name, calls)
        guidance = await self._ask(prompt, tool_name, calls, old)
        tokens = estimated_tokens(prompt)
        return replace(guidance, prompt_tokens=tokens, prompt_version=self._whole.version)

    async def update(self, tool_name: str, calls: Calls, new: Calls, old: Guidance) -> Guidance:
        """Update `old` with the calls in `new`; the card reads all `calls`. Raises ModelError."""
        guidance = await self._ask(self.prompt(tool_name, new, old), tool_name, calls, old)
        tokens = estimated_tokens(self.prompt(tool_name, calls))
        version = self._update.version
        updates = old.updates + 1
        return replace(guidance, prompt_tokens=tokens, prompt_version=version, updates=updates)

    async def _ask(
        self, prompt: str, tool_name: str, calls: Calls, old: Guidance | None
    ) -> Guidance:
        """Ask the model, then add the figures, and lines of the card as long as they fit."""
        text = _cleaned(await self._model.complete(prompt), self.author)
        card = self._card.write(tool_name, calls, old)
        counted = Line(figures(calls), "rate")
        counted = self._wording.marked(counted, shared_origin(call.imported for call in calls))
        whole = f"{text}\n{counted.text}"
        kept = []
        for line in card.lines:
            if line.kind == "rate":
                continue
            longer = f"{whole}\n{BULLET}{line.text}"
            if token_weight(longer) <= self._max_tokens:
                whole = longer
                kept.append(line)
        return replace(card, text=whole, lines=kept, written=text, author=self.author)


class DryRunWriter:
    """Counts the prompts that a model would be sent. The guidance that it returns is the card."""

    asks_model = False

    def __init__(self, writer: ModelWriter, card: CardWriter, model: DryRunModel) -> None:
        self._writer = writer
        self._card = card
        self._model = model
        self.author = writer.author

    def among(self, calls: Calls) -> DryRunWriter:
        """Copy this writer as `ModelWriter.among` does."""
        return DryRunWriter(self._writer, self._card.among(calls), self._model)

    def write(self, tool_name: str, calls: Calls, old: Guidance | None) -> Guidance:
        tokens = self._model.count(self._writer.prompt(tool_name, calls))
        card = self._card.write(tool_name, calls, old)
        return replace(card, prompt_tokens=tokens, author=self.author)

    def update(self, tool_name: str, calls: Calls, new: Calls, old: Guidance) -> Guidance:
        """Count the prompt that `ModelWriter.update` would send if a model had written the card."""
        self._model.count(self._writer.prompt(tool_name, new, replace(old, written=old.text)))
        card = self._card.write(tool_name, calls, old)
        tokens = estimated_tokens(self._writer.prompt(tool_name, calls))
        return replace(card, prompt_tokens=tokens, author=self.author, updates=old.updates + 1)


def figures(calls: Calls) -> str:
    """Write `Statistics: 30 calls, 27 worked, avg_score 0.85`, without figures that are unknown."""
    sums = sums_of(calls)
    found = statistics(sums)
    known = {name: getattr(found, name) for name in found.__struct_fields__ if name[:4] == "avg_"}
    parts = [f"{name} {value:.4g}" for name, value in known.items() if value is not None]
    worked = [f"{sums.worked} worked"] if found.success_rate is not None else []
    return FIGURES + ", ".join([counted(found.calls, "call"), *worked, *parts])


def _head(number: int, call: ToolCallResult) -> str:
    """Write `#3 failed timeout 1.5 s 88 tokens` for a call, without times below a second."""
    parts = [f"#{number}"]
    if call.failed:
        parts += ["failed", call.error_class] if call.error_class != "error" else ["failed"]
        parts += ["but useful"] if call.score else []
    elif call.score is not None:
        parts += ["ok" if call.score else "useless"]
    parts += [f"{call.time_cost:.3g} s"] if (call.time_cost or 0) >= 1 else []
    parts += [] if call.token_cost is None else [f"{call.token_cost} tokens"]
    return " ".join(filter(None, parts))


def _bodies(calls: Calls) -> Iterator[str]:
    """Yield the input and the outcome of each call in one line: `{"q":"x"} -> error as #2`."""
    first: dict[tuple[str, str], int] = {}
    for number, call in enumerate(calls, 1):
        texts = []
        for part in _parts(call):
            reference = f"{part[0]} as #{first.setdefault(part, number)}"
            is_repeated = first[part] < number and len(reference) < len(part[1])
            texts.append(reference if is_repeated else part[1])
        yield " -> ".join(filter(None, (texts[0], " | ".join(filter(None, texts[1:])))))


def _parts(call: ToolCallResult) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the input, then of each part of the outcome."""
    yield "input", cut_middle(shown(as_json(call.input)), MAX_INPUT)
    summary, evaluation = shown(call.summary), shown(call.evaluation)
    by_rules = call.judge is not None and call.judge.model == "rule_based_check"
    if by_rules:  # its texts quote the call; only the misfit to a schema is not said elsewhere
        misfit = _MISFIT.search(evaluation)
        summary = ""
        evaluation = misfit[0] if misfit else ""
    if call.failed:
        error = cut_middle(shown(call.output[-4 * MAX_ERROR :]), MAX_ERROR)
        line = shown(error_line(call.output))[:MAX_LINE]
        error = error if line in error else f"{line} [...] {error}"
        yield "error", "" if error in f"{summary} {evaluation}" else error
    elif by_rules:
        yield "answer", plain(call.output, MAX_ANSWER) or "nothing"
    yield "summary", summary
    yield "evaluation", evaluation


def _cleaned(reply: str, who: str) -> str:
    """Take the text out of a reply, without headings and fences, so that a prompt can hold it.

    Raises ModelError if the reply is empty, or has only fences of another kind.
    """
    answer = without_thought(reply)
    fences = list(_FENCE.finditer(answer))
    text = answer
    if fences:
        blocks = [
            (start[1].lower(), answer[start.end() : end.start() if end else None])
            for start, end in zip(fences, [*fences[1:], None], strict=True)
            if start[1] or start is fences[0]
        ]
        wanted = [block for kind, block in blocks if kind in ("txt", "text", "")]
        if not wanted:
            raise ModelError(f"{who}: the reply holds a fence of another kind, expected txt")
        text = next((block for block in reversed(wanted) if block.strip()), "")
    lines = plain_lines(text, MAX_TEXT)
    if not lines:
        raise ModelError(f"{who}: the reply holds no text")
    return lines
