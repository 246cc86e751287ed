"""From what a user said to rules: `hook` reads a turn, `decrees` finds the instructions in its sentences.

A message meets, in this order: `pasted` and `shown_text` (what is not the user's own), `sentences`, the cues of English
and Chinese, `tool_words` and `which_tools` (which of the tools at hand are meant). `failures` finds what kept failing.
"""

from typing import Any

from toolmem.former_modules import warn

_IN_HOOK = ("Captured", "Heard", "Nouns", "SessionRule", "ToolMemoryCaptureHook", "USER_EDICT", "hear")


def __getattr__(name: str) -> Any:
    """What this module had in 0.1, when it was one file."""
    if name not in _IN_HOOK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolmem.rules.capture import hook

    warn(f"{__name__}.{name}", f"{__name__}.hook.{name}")
    return getattr(hook, name)
