"""Decide which names hold a secret, and which values under such a name are secrets.

A name is *sure* (`password`, `api_key`, `clientSecret`: any value but a placeholder is a secret),
*likely* (`token`, `auth`, `session_key`: the value has to look like one) or neither (`max_tokens`,
`page_token`, `key`, `password_reset_required`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from toolmem.text.forms import word_set
from toolmem.text.patterns import late_pattern

Kind = Literal["", "likely", "sure"]

LONGEST_NAME = 64  # characters
_WORD = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[\u4e00-\u9fff]+")
# Words that may follow the one that decides: `password_confirmation`, `api_key_2`.
_SUFFIXES = word_set("confirm confirmation again repeat hash value text plain plaintext string")
_SURE = late_pattern(
    r"(?:password|passwort|passwd|passphrase|passcode|mysqlpwd|secrets?"
    r"|(?:api|secret|private|access|auth|encryption|signing|master)keys?"
    r"|(?:access|auth|refresh|bearer|api|oauth|bot|personal|private)token"
    r"|(?:user|db|root|admin|smtp|ftp|mail|mysql|pg|postgres|redis|proxy)pass"
    r"|密码|口令|密钥|令牌)\Z"
)
_SURE_WORDS = word_set("pwd pswd pw otp cvv cvc jwt")
_LIKELY = late_pattern(
    r"(?:credentials?|authorization|cookies?|passwords"
    r"|(?:account|subscription|shared|client|consumer|webhook|hmac|deploy|storage|app|service"
    r"|admin|ssh)key)\Z"
)
_LIKELY_WORDS = word_set("token auth pass bearer")
# Words before `token` that name no secret: it turns a page, marks a place or names a request.
_HARMLESS_TOKENS = word_set(
    "page next continuation cursor sync start end eos bos pad unk stop mask sep cls special resume "
    "scroll idempotency client cancel dedup prev previous pagination max min per first last new "
    "total request"
)
_PASSWORD_NAMES = ("pass", "pwd", "pswd", "pw", "密码", "口令")

_PLACEHOLDER = late_pattern(
    r"[*•.\-_#?]+|x{3,}|<[^<>]*>|\[[^\[\]]*\]|\{\{?[^{}]*\}\}?|\$\{[^{}]*\}|\$\([^()]*\)"
    r"|\$[A-Za-z_]\w*|%\w+%|(?:your|insert|enter|example)[-_ ].*|arn:.*"
    r"|ssh-(?:rsa|ed25519|dss) .*",
    re.IGNORECASE | re.DOTALL,
)
_VARIABLE = late_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# Words of types and states.
_STATE_WORDS = word_set(
    "null none nil undefined true false yes no on off string str text varchar char bytes int "
    "integer number object bool boolean any optional required missing invalid incorrect wrong "
    "expired hidden redacted masked unchanged changed empty blank unset set valid ok enabled "
    "disabled unknown denied n/a na error failed success secretstr pending approved granted "
    "declined accepted rejected basic bearer digest"
)
# Words of a sentence about a secret.
_SENTENCE_WORDS = word_set(
    "is are was be must cannot can should may has have not no does do please required invalid "
    "incorrect wrong too field this the missing expected least most characters character short "
    "long match blank empty expired of for and or with in by to a an your was used option options "
    "flag argument value here when if from via using on at as"
)
_DATE = late_pattern(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?")
_CHINESE_OR_JAPANESE = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_BLANK = late_pattern(r"\s")
_DIGIT = late_pattern(r"\d")
_LETTER = late_pattern(r"[^\W\d_]")
_SYMBOL = late_pattern(r"[!@#$%^*+~?]")
_PATHS = ("/", "~/", "./", "../", "C:\\", "file:")


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> Kind:
    """Return whether a key, variable, header or option holds a secret: sure, likely, or ""."""
    words = [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:])]
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    if not words:
        return ""
    last = words[-1].rstrip("0123456789")
    whole = "".join(words).rstrip("0123456789")
    if last == "token" and not _HARMLESS_TOKENS.isdisjoint(words[:-1]):
        return ""
    if last in _SURE_WORDS or _SURE.search(whole):
        return "sure"
    return "likely" if last in _LIKELY_WORDS or _LIKELY.search(whole) else ""


def is_secret_value(name: str, value: str, kind: Kind) -> bool:
    """Whether a text is a secret, if it is the value of a name of this kind."""
    if not value.strip() or is_placeholder(value):
        return False
    if kind == "likely":
        is_cookie = "cookie" in name.lower() and "=" in value and len(value) >= 8
        return is_cookie or looks_random(value)
    if _CHINESE_OR_JAPANESE.search(value):  # a sentence: 密码不能为空
        return False
    if _BLANK.search(value.strip()):
        words = re.findall(r"[a-z]+", value.lower()[:200])
        is_password = any(word in name.lower() for word in _PASSWORD_NAMES)
        return is_password and len(words) > 1 and _SENTENCE_WORDS.isdisjoint(words)
    return "pass" in name.lower() or not value.startswith(_PATHS)


def is_placeholder(value: str) -> bool:
    """Whether a text is a placeholder for a value: `***`, `<token>`, `${VAR}`, `required`."""
    bare = value.strip()
    if bare.lower().rstrip(".!") in _STATE_WORDS or _PLACEHOLDER.fullmatch(bare[:200]):
        return True
    return len(bare) <= LONGEST_NAME and bool(_VARIABLE.fullmatch(bare) and secret_kind(bare))


def is_plain_word(word: str) -> bool:
    """Whether a word is common in sentences (`cannot`), or names a type or a state (`string`)."""
    return word.lower() in _STATE_WORDS or word.lower() in _SENTENCE_WORDS


def looks_random(value: str, least: int = 10) -> bool:
    """Whether a text looks generated: `least` characters or more, with digits or mixed case."""
    if len(value) < least or _BLANK.search(value) or _DATE.fullmatch(value):
        return False
    if value.startswith(_PATHS) or "://" in value or "@" in value:
        return False
    if _DIGIT.search(value):
        return bool(_LETTER.search(value))
    return len(value) >= 24 and value != value.lower() and value != value.upper()


def looks_like_password(value: str) -> bool:
    """Whether a text has five or more characters, with a letter, and a digit or a sign."""
    value = value.rstrip("!?") if value.rstrip("!?").isalpha() else value
    if len(value) < 5 or not _LETTER.search(value):
        return False
    return bool(_DIGIT.search(value) or _SYMBOL.search(value))
