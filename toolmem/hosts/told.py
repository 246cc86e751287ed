"""What hooks put before a model, and what they tell the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.events import SILENT, HookAnswer

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.receipts import SaidHere
    from toolmem.light_models import GuidanceLines, ToolMemoryRule
    from toolmem.rules.capture.hook import Captured
    from toolmem.rules.pinning import Caps
    from toolmem.stored import RawRecord

_LONGEST = 300  # characters of a sentence that is told again
_MOST_LINES = 12
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # of the caps that are tried, until what is said is short enough
# What becomes of calls against it: the call that was tried is named, and nothing else is claimed.
_TRIED = {"deny": ("stops `{}`", "会拦下 `{}`"), "ask": ("asks you before `{}`", "执行 `{}` 前会先问您")}
_CHECKED = ("calls are checked against it", "会检查调用")
_REMINDS = ("a reminder: no call is checked against it", "仅作提醒：不检查任何调用")
_KEPT = ("Kept as a rule: {} ({}; {})", "已记为规则：{}（{}；{}）")
_NO_TOOL = ("no tool in particular", "不限工具")
_TOO_LONG = (
    "Not kept, as it is too long for a rule: sentences with a demand: {}",
    "未记住，因为太长，不能作为规则：含有要求的句子有 {} 句",
)
_NOT_KEPT = ("Not kept: {}", "未记住：{}")


def rules_and_guidance(
    stores: Sequence[StoreFile],
    tools: Sequence[str],
    demands: Iterable[SaidHere],
    caps: Caps,
    guidance_tokens: int,
    most_tokens: int,
) -> str:
    """The pinned rules of these stores, the demands of the session, and what is known of the tools; "" for nothing.

    `most_tokens`: of all of it, as far as fewer rules and less guidance make it so.
    """
    from toolmem.engine.system_prompt import prompt_of
    from toolmem.providers.tokenizer import estimated_tokens
    from toolmem.rules.capture.hook import SessionRule
    from toolmem.rules.kept_rules import with_kept
    from toolmem.rules.pinning import chosen_for_prompt
    from toolmem.rules.section import render_since

    if not stores:
        return ""
    records: list[RawRecord] = []
    known: dict[str, GuidanceLines] = {}
    for store in stores:
        rules, guidance = store.prompt_rows(DEFAULT_WORKSPACE, None, tools)
        records += with_kept(store, DEFAULT_WORKSPACE, None, rules, store.clock.now())
        known = {**dict(guidance), **known}  # the project's own goes before the user's
    said = [SessionRule(each.tool, each.rule) for each in demands]
    text = ""
    for part in _PARTS:
        own = (max(caps[0] // part, 1), caps[1] // part, caps[2] // part)
        pinned = chosen_for_prompt(records, {}, own, stores[0].clock.now())
        block = prompt_of("", pinned, known.items(), guidance_tokens // part, estimated_tokens)
        newest = said[-max(len(said) // part, 1) :]
        here = render_since([], newest, [])
        if len(newest) < len(said):
            here += f" Earlier ones are not repeated here: {len(said) - len(newest)}."
        text = "\n\n".join(each for each in (block, here) if each)
        if estimated_tokens(text) <= most_tokens:
            break
    return text


def captured_lines(captured: Captured, message: str) -> list[str]:
    """What became of a message, line by line, in its language; nothing where it demanded nothing."""
    from toolmem.readers.plain_text import plain_line
    from toolmem.rules.words_after import has_chinese

    said: dict[str, list[ToolMemoryRule]] = {}
    for rule in captured.rules:
        said.setdefault(plain_line(rule.rule, _LONGEST), []).append(rule)
    chinese = has_chinese(message)
    lines = [_kept(sentence, rules, captured.stops, has_chinese(sentence)) for sentence, rules in said.items()]
    lines += captured.notes
    if captured.too_long:
        lines.append(_TOO_LONG[chinese].format(captured.too_long))
    lines += [_NOT_KEPT[chinese].format(each) for each in captured.failures]
    return lines[:_MOST_LINES] + ([f"(+{len(lines) - _MOST_LINES})"] if len(lines) > _MOST_LINES else [])


def _kept(sentence: str, rules: Sequence[ToolMemoryRule], stops: Mapping[str, str], chinese: bool) -> str:
    from toolmem.readers.plain_text import plain_line
    from toolmem.rules.identity import UNSCOPED
    from toolmem.rules.section import tool_in_words

    checked = [rule for rule in rules if rule.checked]
    names = [rule.tool_name for rule in checked or rules]
    shown = (tool_in_words(name, chinese) for name in names if name != UNSCOPED)
    tools = ("、" if chinese else ", ").join(dict.fromkeys(shown)) or _NO_TOOL[chinese]
    tried = next((rule for rule in checked if rule.id in stops), None)
    becomes = (_CHECKED if checked else _REMINDS)[chinese]
    if tried is not None:
        becomes = _TRIED[tried.effect][chinese].format(plain_line(stops[tried.id], _LONGEST))
    return _KEPT[chinese].format(sentence, tools, becomes)


def told_of_prompt(lines: Sequence[str], before: Sequence[str] = (), nothing: Sequence[str] = ()) -> HookAnswer:
    """To the user and to the model alike. `before`: what happened to rules before this message; `nothing`: why it came
    to nothing here, as what it says may be for the agent alone.
    """
    said = "toolmem, on what the user just said; it binds from now on:"
    happened = "toolmem, of the user's rules since they last wrote; tell them, and act on none of it by yourself:"
    changed = "toolmem: of what it keeps, the user's message changed nothing:"
    parts = [(said, lines), (changed, nothing), (happened, before)]
    context = "\n\n".join(f"{head}\n" + "\n".join(f"- {line}" for line in of) for head, of in parts if of)
    return (
        HookAnswer(notice="toolmem: " + "\n".join([*lines, *nothing, *before]), context=context) if context else SILENT
    )
