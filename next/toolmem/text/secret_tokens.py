"""Tokens that are known by their form alone: keys of well-known services, JSON web tokens, keys.

Most are one long word, so the forms are tried only where a text has such a word. No expression
goes back over what it has read, so that the time grows with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]  # first character, and the one behind the last

LEAST = 16  # characters of the shortest token
_END = r"(?![A-Za-z0-9_-])"
_LONG_WORD = re.compile(r"[A-Za-z0-9_-]{16,}+")
_JOINT = re.compile(r"[-_](?=[A-Za-z])")
_LONGEST_PREFIX = 64  # characters of a word before a token in it: `backup_ghp_...`
_WORD_TOKENS = re.compile(
    "|".join(
        (
            r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",  # Amazon
            rf"LTAI[A-Za-z0-9]{{12,26}}+{_END}",  # Alibaba Cloud
            r"AIza[A-Za-z0-9_-]{30,45}+|GOCSPX-[A-Za-z0-9_-]{20,60}+",  # Google
            r"gh[pousr]_[A-Za-z0-9]{20,255}+|github_pat_[A-Za-z0-9_]{20,255}+",
            r"glpat-[A-Za-z0-9_-]{16,64}+",  # GitLab
            r"xox[abeoprs]-[A-Za-z0-9-]{10,250}+|xapp-\d-[A-Za-z0-9-]{10,250}+",  # Slack
            r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,250}+|whsec_[A-Za-z0-9+/=]{16,100}+",  # Stripe
            # OpenAI, Anthropic, DashScope, DeepSeek and services that use their form
            rf"sk-[A-Za-z0-9]{{20,200}}+{_END}",
            r"sk-(?:live|test|proj|ant|or|svcacct|admin)-(?=[A-Za-z_-]{0,40}+[0-9])"
            r"[A-Za-z0-9_-]{8,250}+",
            r"xai-[A-Za-z0-9]{40,120}+|gsk_[A-Za-z0-9]{30,80}+|tvly-[A-Za-z0-9-]{20,60}+",
            r"(?:hf|r8)_[A-Za-z0-9]{30,60}+",  # Hugging Face, Replicate
            rf"npm_[A-Za-z0-9]{{36}}{_END}|pypi-[A-Za-z0-9_-]{{50,400}}+",
            r"dop_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # DigitalOcean, Shopify
            r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+"  # JSON web tokens
            r"(?:\.[A-Za-z0-9_-]{0,2000}+)?+",
        )
    )
)
# Tokens of several words: (what each of them holds, its form).
_OTHER_TOKENS = (
    ("ya29.", re.compile(r"\bya29\.[A-Za-z0-9_-]{20,2000}+")),  # Google
    ("SG.", re.compile(r"\bSG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+")),  # SendGrid
    ("hvs.", re.compile(r"\bhvs\.[A-Za-z0-9_-]{24,200}+")),  # Vault
    (":AA", re.compile(rf"\b\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}")),  # Telegram
    (
        "hooks.slack.com",
        re.compile(
            r"(?<=hooks\.slack\.com/services/)"
            r"T[A-Z0-9]{6,14}+/B[A-Z0-9]{6,14}+/[A-Za-z0-9]{16,40}+"
        ),
    ),
    (
        "PRIVATE KEY",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"[^-]{0,16000}+(?:-(?!----)[^-]{0,4000}+){0,40}+"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?+"
        ),
    ),
)


def token_spans(text: str) -> Iterator[Span]:
    """Where such tokens stand."""
    for word in _LONG_WORD.finditer(text):
        start = word.start()
        if text[start] in "nrt" and text[max(0, start - 1) : start] == "\\":  # \n of JSON text
            start += 1
        token = _WORD_TOKENS.match(text, start) or _behind_a_prefix(word)
        if token is not None:
            yield token.span()
    for literal, form in _OTHER_TOKENS:
        if literal in text:
            yield from (found.span() for found in form.finditer(text))


def _behind_a_prefix(word: re.Match[str]) -> re.Match[str] | None:
    end = min(word.start() + _LONGEST_PREFIX, word.end())
    for joint in _JOINT.finditer(word.string, word.start(), end):
        token = _WORD_TOKENS.match(word.string, joint.end())
        if token is not None:
            return token
    return None
