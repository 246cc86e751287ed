"""Tokens that give themselves away by their form: keys of well-known services, JSON web tokens, private keys.

Almost all of them are one long word: only where a text has such a word are the forms tried, at its beginning. No
expression goes back over what it has read (possessive quantifiers), so the time grows with the text.
"""

from __future__ import annotations

import re

from toolmem.late import late_pattern

Span = tuple[int, int]

_END = r"(?![A-Za-z0-9_-])"
_LONG_WORD = late_pattern(r"[A-Za-z0-9_-]{16,}+")
_JOINT = late_pattern(r"[-_](?=[A-Za-z])")
_LONGEST_PREFIX = 64  # characters of a word before a token in it
_WORDS = late_pattern(
    "|".join(
        (
            r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",  # Amazon
            r"LTAI[A-Za-z0-9]{12,26}+" + _END,  # Alibaba Cloud
            r"AIza[A-Za-z0-9_-]{30,45}+",  # Google
            r"GOCSPX-[A-Za-z0-9_-]{20,60}+",
            r"gh[pousr]_[A-Za-z0-9]{20,255}+",  # GitHub
            r"github_pat_[A-Za-z0-9_]{20,255}+",
            r"glpat-[A-Za-z0-9_-]{16,64}+",  # GitLab
            r"xox[abeoprs]-[A-Za-z0-9-]{10,250}+",  # Slack
            r"xapp-\d-[A-Za-z0-9-]{10,250}+",
            r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,250}+",  # Stripe
            r"whsec_[A-Za-z0-9+/=]{16,100}+",
            # OpenAI, Anthropic, DashScope, DeepSeek and those who copied them
            r"sk-[A-Za-z0-9]{20,200}+" + _END,
            r"sk-(?:live|test|proj|ant|or|svcacct|admin)-(?=[A-Za-z_-]{0,40}+[0-9])[A-Za-z0-9_-]{8,250}+",
            r"xai-[A-Za-z0-9]{40,120}+",
            r"gsk_[A-Za-z0-9]{30,80}+",
            r"tvly-[A-Za-z0-9-]{20,60}+",
            r"(?:hf|r8)_[A-Za-z0-9]{30,60}+",  # Hugging Face, Replicate
            r"npm_[A-Za-z0-9]{36}" + _END,
            r"pypi-[A-Za-z0-9_-]{50,400}+",
            r"dop_v1_[a-f0-9]{64}",  # DigitalOcean
            r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # Shopify
            # JSON web tokens
            r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]{0,2000}+)?+",
        )
    )
)
# Those of several words: (what they cannot be without, the form; its group is the secret, else all of it).
_FORMS = (
    ("ya29.", late_pattern(r"\bya29\.[A-Za-z0-9_-]{20,2000}+")),  # Google
    ("SG.", late_pattern(r"\bSG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+")),  # SendGrid
    ("hvs.", late_pattern(r"\bhvs\.[A-Za-z0-9_-]{24,200}+")),  # Vault
    (":AA", late_pattern(r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}" + _END)),  # Telegram
    (
        "hooks.slack.com",
        late_pattern(r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]{6,14}+/B[A-Z0-9]{6,14}+/[A-Za-z0-9]{16,40}+"),
    ),
    (
        "PRIVATE KEY",
        late_pattern(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"[^-]{0,16000}+(?:-(?!----)[^-]{0,4000}+){0,40}+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?+"
        ),
    ),
)


def _behind_a_prefix(word: re.Match[str]) -> re.Match[str] | None:
    """`prod-sk-live-...`, `backup_ghp_...`"""
    text, read_to = word.string, word.start() + _LONGEST_PREFIX
    for mark in _JOINT.finditer(text, word.start(), min(read_to, word.end())):
        token = _WORDS.match(text, mark.end())
        if token is not None:
            return token
    return None


def token_spans(text: str) -> list[Span]:
    """Where such tokens stand."""
    spans: list[Span] = []
    for word in _LONG_WORD.finditer(text):
        start = word.start()
        if text[start] in "nrt" and text[max(0, start - 1) : start] == "\\":  # \n as JSON text writes it
            start += 1
        token = _WORDS.match(text, start) or _behind_a_prefix(word)
        if token is not None:
            spans.append(token.span())
    if "." in text or ":" in text or "-----BEGIN" in text:
        for literal, form in _FORMS:
            if literal in text:
                spans += (found.span() for found in form.finditer(text))
    return spans
