"""The sections that say what is remembered, shown and guarded: rules, guidance, guard, log, session, secrets."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from toolmem.config.section_base import Section


def _nouns(given: dict[str, list[str]]) -> dict[str, list[str]]:
    for tool, words in given.items():
        if not all(word.strip() for word in words):
            raise ValueError(f"an empty word among the nouns of {tool!r}")
    return given


class RuleSettings(Section):
    """What the user demands: what of it is captured, and what is pinned in a prompt."""

    max_in_prompt: Annotated[int, Field(ge=1)] = 30
    max_characters: Annotated[int, Field(ge=1)] = 6000
    max_critical_characters: Annotated[int, Field(ge=1)] = 20_000
    # word of a tool's name -> words of a sentence that mean it; beside the built-in table
    nouns: Annotated[dict[str, list[str]], AfterValidator(_nouns)] = Field(default_factory=dict)
    capture: bool | Literal["model"] = True


class SessionSettings(Section):
    """What an agent's session does by itself."""

    judging: Literal["background", "deferred"] = "background"
    guidance_tokens: Annotated[int, Field(ge=0)] | None = None  # as `guidance.max_tokens_prompt`, where it is set


class SecretSettings(Section):
    """What is stored of secrets."""

    mask: bool = True  # values that look like secrets are masked before a call is stored


class GuidanceSettings(Section):
    """What guidance counts apart, and how long it is."""

    max_tokens: Annotated[int, Field(ge=0)] = 300  # of the card of one tool
    max_tokens_prompt: Annotated[int, Field(ge=0)] = 1_200  # of all tools, in a prompt
    context_key: str = ""  # the field of a record that names what its call ran against, as in metadata.database


_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def _as_bytes(given: Any) -> Any:
    """A number of bytes from text with a unit."""
    if not isinstance(given, str):
        return given
    read = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*", given)
    unit = _BYTES.get(read[2].lower() or "b") if read else None
    if read is None or unit is None:
        raise ValueError(f"{given!r} is no number of bytes; write it as 500 MB, 1 GB or 1000000000")
    return round(float(read[1]) * unit)


class LogSettings(Section):
    """How many calls the log of each workspace holds beside those in the windows of its tools; the oldest go."""

    max_calls: Annotated[int, Field(ge=1)] = 100_000
    max_bytes: Annotated[int, BeforeValidator(_as_bytes), Field(ge=1)] = 1_000_000_000  # a number, or 500 MB, 1 GB


def _off(given: Any) -> Any:
    """Other readers of YAML make false of `off`."""
    return "off" if given is False else given


GuardMode = Annotated[Literal["off", "shadow", "advise", "enforce"], BeforeValidator(_off)]


with warnings.catch_warnings():
    # BaseModel has a method of this name from before its second version; the key's name is what users write.
    warnings.filterwarnings("ignore", 'Field name "schema"')

    class GuardSettings(Section):
        """What stands against a call before it runs; each source `off`, `shadow` (decided and logged, never shown),
        `advise` (the call runs and the agent is told) or `enforce` (the call is stopped). `guard: off` switches all
        four off, and so does `TOOLMEM_GUARD=off` in the environment, over files and overrides.
        """

        rules: GuardMode = "enforce"  # what the user demands, as far as it can be checked
        repeats: GuardMode = "advise"  # the exact call that failed before, where nothing has changed since
        names: GuardMode = "advise"  # names that are known not to exist
        schema: GuardMode = "advise"  # type: ignore[assignment]  # arguments that the tool's declared schema forbids
        on_error: Literal["open", "closed"] = "open"  # where no rules can be had at all: every call runs, or none

        @property
        def modes(self) -> dict[str, str]:
            """By source."""
            return {source: getattr(self, source) for source in GUARD_SOURCES}

        @property
        def is_on(self) -> bool:
            """At least one source is asked."""
            return set(self.modes.values()) != {"off"}


GUARD_SOURCES = ("rules", "repeats", "names", "schema")


def whole_guard(given: Any) -> Any:
    """The section that `guard: off` stands for; whatever else is given, as it is."""
    return dict.fromkeys(GUARD_SOURCES, "off") if given is False or given == "off" else given


def _is_section(given: Any) -> Any:
    if not isinstance(given, dict | GuardSettings):
        raise ValueError("expected off, or a section (rules, repeats, names, schema, on_error)")
    return given


WholeGuard = Annotated[GuardSettings, BeforeValidator(_is_section)]
