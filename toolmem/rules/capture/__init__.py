"""From what a user said to rules: `hook` reads a turn, `instructions` finds what its sentences forbid or bound.

A message meets, in this order: `pasted` and `shown_text` (what is not the user's own), `sentences`, the `cues` of
`english` and `chinese`, `tools_meant` (which of the tools at hand). `repeated_failures` finds what kept failing. Their
words stand in YAML files, of which `docs/capture_tables.py` makes `tables.json`.
"""

from typing import Any

from toolmem.former_modules import warn

_IN_HOOK = {"hear": "extract", "Heard": "Extracted"}
_IN_HOOK |= {name: name for name in ("Captured", "Nouns", "SessionRule", "ToolMemoryCaptureHook", "USER_EDICT")}


def __getattr__(name: str) -> Any:
    """What this module had in 0.1, when it was one file."""
    if name not in _IN_HOOK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolmem.rules.capture import hook

    warn(f"{__name__}.{name}", f"{__name__}.hook.{_IN_HOOK[name]}")
    return getattr(hook, _IN_HOOK[name])
