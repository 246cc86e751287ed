"""From what a user said to rules: `hook` reads a turn, `instructions` finds what its sentences forbid or bound.

Sentences are read by `toolmem.sentences`: what is not the user's own (`shown_text`), what is demanded and for how long
(`demanding`), of which tools (`tools_meant`), what is taken back (`taken_back`). `repeated_failures` finds what kept
failing.
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
