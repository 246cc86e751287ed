"""Counts tokens as Qwen models do, offline: the vocabulary comes with the `dashscope` package.

Only the text is counted. What a chat template puts around a message (some ten tokens) is not in it.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from toolmem.errors import ConfigError

_MODEL = "qwen-turbo"  # all Qwen chat models share this vocabulary in the package
_loading = Lock()


class QwenTokenizer:
    """Implements `ports.Tokenizer`. Made at once; the vocabulary is loaded at the first count (about a second).

    One vocabulary serves the whole process. Counting is safe from any thread and takes at most half a second for a
    million characters.
    """

    def count(self, text: str) -> int:
        """Tokens of `text` as plain text: `<|im_start|>` in a tool's output is six tokens, no control sign.

        Lone surrogates count as U+FFFD. Raises ConfigError where the installed `dashscope` cannot count.
        """
        with _loading:
            vocabulary = _vocabulary()
        return len(vocabulary.encode(text, allowed_special=set(), disallowed_special=()))


@cache
def _vocabulary() -> Any:
    try:
        # dashscope 1.x imports tiktoken only when the tokenizer is made
        import dashscope

        return dashscope.get_tokenizer(_MODEL)
    except ImportError as error:
        raise ConfigError(f"counting tokens needs 'dashscope>=2' with tiktoken: {error}") from error
