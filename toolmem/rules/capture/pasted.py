"""Text in a message that its author only shows: quotes, code, forwarded mail, log lines. It never makes a rule."""

from toolmem.sentences.shown_text import mask_pasted
from toolmem.sentences.split_text import MASK

__all__ = ["MASK", "mask_pasted"]
