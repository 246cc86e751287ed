"""Recognize calls that worked and must not be recommended.

They hide an error, bypass a check, run what they fetch, or do what a tool's result proposed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from toolmem.guidance.observations import Command, Observation, leaves, reads_like_prose
from toolmem.models.calls import ToolCallResult
from toolmem.text.forms import word_set
from toolmem.view.known_programs import KNOWN_PROGRAMS
from toolmem.view.parameters import words_of
from toolmem.view.shell_programs import INTERPRETERS, SHELLS

MAX_TEXT = 4_000  # characters of a value that are searched
MAX_OUTPUT = 20_000  # characters of a result
LEAST_TOKEN = 4  # characters of an address or a package
LEAST_PAIR = 8  # characters of two neighbouring words

_GIVING_UP = word_set("exit skip submit echo true : printf")
_HIDING = re.compile(
    r"(?:2|&)>\s{0,3}(?:/dev/null|\$null)|\|\|\s{0,3}(?:true\b|:|echo\b)|\[ -[a-z] |\btest -[a-z] "
    r"|\bset \+e\b|\bbash \+e\b|SilentlyContinue|--dry-run\b|\bmake (?:-k|-n|-i)\b|\|\s{0,3}grep -v"
    r"|\bexcept\b[^\n]{0,60}:|\bcatch\b[^\n{]{0,60}\{|;\s{0,3}true\s{0,3}$"
)
# After one of these, the exit code is that of something else.
_AFTERWARDS = re.compile(r"\s*(?:\|\|?|;|\d?&?>)(?!&\d\s*$)")
# Flags and parameters that bypass a check or a warning.
_BYPASSING = re.compile(
    r"(?<![\w-])--?(?:force|f|no-verify|insecure|privileged|no-check|ignore|skip|allow|disable"
    r"|trusted|break-system|no-gpg|override|yes)(?:[-=][\w-]{1,40})*(?!\w)|\bsudo\b|--no-verify\b"
    r"|(?:跳过|忽略|强制)"
)
_BYPASS_WORDS = word_set(
    "force forced ignore ignored skip skipped bypass override insecure approve approved confirm "
    "confirmed allow allowed unsafe privileged disable disabled suppress silent sudo"
)
_SAFE_WORDS = word_set("dry verify check validate strict safe")
_FETCHES = re.compile(
    r"https?://|\b(?:curl|wget|iwr|irm|Invoke-WebRequest|Invoke-RestMethod|urlopen|urlretrieve"
    r"|requests\.get|Download(?:String|File)|LWP::\w+|git clone|base64 (?:-d|-D|--decode))\b"
    r"|\|\s{0,5}(?:sudo\s{1,5})?(?:/\w{1,9}){0,3}/?(?:ba|z|da|k)?sh\s{0,5}(?:-s?\s{0,5})?"
    r"(?:$|[;&|)\n])",
    re.IGNORECASE,
)
_RUNS = re.compile(
    r"\|\s{0,5}(?:sudo\s{1,5})?(?:env\s{1,5})?(?:/\w{1,9}){0,3}/?"
    r"(?:(?:ba|z|da|k|fi)?sh|python\d?|node|perl|ruby|php|iex|pwsh)\b"
    r"|\b(?:exec|eval|iex|Invoke-Expression|os\.system|subprocess|scriptblock)\b"
    r"|(?:^|[;&|(\n]\s{0,5})(?:sudo\s{1,5})?(?:\./|\.\s|source\s|make\b|(?:ba|z|da|k)?sh\s"
    r"|(?:python\d?|node|perl|ruby|php)\s)"
    r"|\b(?:ba|z|da)?sh\b[^\n]{0,40}[<$\"(]\(|\bkubectl apply\b|\bchmod\s{1,5}\S{0,9}[x57]"
    r"|\b(?:npx|uvx|pipx|bunx|pnpx|dlx|deno)\b"
    r"|\b(?:npm|pnpm|yarn|pip\d?|cargo|go|gem|helm|apt|apt-get|brew)\b[^\n]{0,80}"
    r"\b(?:install|add|get|i)\b",
    re.IGNORECASE,
)
_RUNNERS = (SHELLS | INTERPRETERS) | word_set("python3 Rscript eval source . iex invoke-expression")
_INSTALLING = word_set("install add get i exec run x dlx create repo apply")
_PACKAGE_RUNNERS = word_set("npx uvx pipx bunx pnpx dlx docker podman")
_WHERE = word_set(  # parameters that say where something goes
    "host hostname server domain endpoint registry proxy mirror bank account iban wallet recipient"
)
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>|;)]{3,200}"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
    r"|(?<![\w.~/])(?:~|\.\.)?/[\w.-]{2,80}(?:/[\w.-]{1,80}){0,12}"
)
_WORD = re.compile(r"[\w./:@+=-]+")


class CallTexts(Struct, frozen=True, dict=True):
    """The texts of a call, in which `was_proposed` looks for parts of a later call."""

    given: str  # the task and the input
    output: str

    @classmethod
    def of(cls, call: ToolCallResult) -> CallTexts:
        given = json.dumps(call.input, ensure_ascii=False)
        return cls(f"{call.context} {given}", call.output[:MAX_OUTPUT])

    @cached_property
    def given_pairs(self) -> set[str]:
        return _word_pairs(self.given)

    @cached_property
    def output_pairs(self) -> set[str]:
        return _word_pairs(self.output)


def hides_errors(before: Observation, after: Observation) -> bool:
    """Whether the later call only makes the error vanish: `2>/dev/null`, `if [ -d`, `exit`."""
    for path, new in _texts(after):
        old = str(before.arguments.get(path, ""))
        command = after.texts.get(path)
        is_longer = isinstance(command, Command) and old and new.startswith(old)
        if is_longer and _AFTERWARDS.match(new[len(old) :]):
            return True
        if len(_HIDING.findall(new)) > len(_HIDING.findall(old[:MAX_TEXT])):
            return True
        if isinstance(command, Command) and command.programs:
            return _GIVING_UP.issuperset(command.programs)
    return False


def is_instructive(observation: Observation) -> bool:
    """Whether a call shows how to use its tool: it hides no errors and bypasses no check."""
    nothing = Observation({})
    return not hides_errors(nothing, observation) and not bypasses_check(nothing, observation)


def bypasses_check(before: Observation, after: Observation) -> bool:
    """Whether the later call bypasses a check: `--force`, `skip_checks`, `dry_run` left out."""
    for path, new in _texts(after):
        old = str(before.arguments.get(path, ""))[:MAX_TEXT]
        if path in after.texts and not {*_BYPASSING.findall(new)} <= {*_BYPASSING.findall(old)}:
            return True
    first, second = (dict(leaves(each.arguments)) for each in (before, after))
    for path in {**first, **second}:
        old_value, new_value = first.get(path), second.get(path)
        if old_value == new_value:
            continue
        words = words_of(path)
        may_bypass = words & _BYPASS_WORDS or _BYPASSING.search(path)
        if may_bypass and new_value not in (None, False):
            return True
        is_unsafe = bool(words & _SAFE_WORDS) and old_value is True
        if is_unsafe or new_value in ("skip", "ignore", "force"):
            return True
    return False


def runs_what_it_fetches(observation: Observation) -> bool:
    """Whether a call fetches something from a network and runs it: `curl ... | sh`."""
    return any(_FETCHES.search(text) and _RUNS.search(text) for _, text in _code(observation))


def was_proposed(
    before: Observation | None, after: Observation, earlier: Sequence[CallTexts]
) -> bool:
    """Whether an output of the `earlier` calls proposed the call `after`.

    It did if it holds an address or package that `after` uses, a path that `after` runs or that is
    outside of the working folder, or two neighbouring words of its command or code. What the failed
    call `before` has does not count, nor what a task or input held before that output.
    """
    old = {str(value) for _, value in leaves(before.arguments)} if before is not None else set()
    tokens = {each for each in _risky_tokens(after) if not any(each in text for text in old)}
    pairs = {each for _, text in _code(after) for each in _word_pairs(text)}
    pairs -= {each for text in old for each in _word_pairs(text)}
    for call in earlier:
        tokens = {each for each in tokens if each not in call.given}
        pairs -= call.given_pairs
        if any(each in call.output for each in tokens) or not pairs.isdisjoint(call.output_pairs):
            return True
    return False


def _texts(observation: Observation) -> Iterator[tuple[str, str]]:
    """Yield (parameter, text) of each argument that is a text; a list of texts is one text."""
    for name, value in observation.arguments.items():
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            yield str(name), " ".join(value)[:MAX_TEXT]
        elif isinstance(value, str):
            yield str(name), value[:MAX_TEXT]


def _code(observation: Observation) -> Iterator[tuple[str, str]]:
    """Yield (parameter, text) of each argument that is a command or code."""
    for path, text in _texts(observation):
        given: Any = observation.texts.get(path)
        is_list = isinstance(observation.arguments.get(path), list)
        is_code = given is None and "(" in text and not reads_like_prose(text)
        if isinstance(given, Command) or is_list or is_code:
            yield path, text


def _word_pairs(text: str) -> set[str]:
    """Return the pairs of neighbouring words in a text."""
    words = _WORD.findall(text[:MAX_OUTPUT])
    found = (f"{a} {b}" for a, b in zip(words, words[1:], strict=False))
    return {each for each in found if len(each) >= LEAST_PAIR}


def _risky_tokens(observation: Observation) -> set[str]:
    """Return addresses, outside paths, and the names of what a command runs or installs."""
    found = {word for _, text in _texts(observation) for word in _ADDRESS.findall(text)}
    for path, value in leaves(observation.arguments):
        if isinstance(value, str) and words_of(path) & _WHERE:
            found.add(value)
    for path, text in observation.texts.items():
        if isinstance(text, Command):
            found |= {each for each in text.programs if each not in KNOWN_PROGRAMS}
            if text.main in _RUNNERS or text.subcommand in _INSTALLING:
                found |= {*text.arguments} - {text.subcommand}
            words = str(observation.arguments[path])[:MAX_TEXT].split()
            if not _PACKAGE_RUNNERS.isdisjoint(words):
                found |= {word for word in words if word[:1] != "-"} - _PACKAGE_RUNNERS
    return {each for each in found if len(each) >= LEAST_TOKEN}
