"""Which names hold a secret, and which values under such a name are one.

A name is *sure* (`password`, `api_key`, `clientSecret`: any value but a placeholder is one), *likely* (`token`, `auth`,
`session_key`: the value must look like one), or none (`max_tokens`, `page_token`, `key`, `password_reset_required`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from toolmem.late import late_pattern
from toolmem.readers import words as _words

Kind = Literal["", "likely", "sure"]


LONGEST_NAME = 64  # characters
_WORD = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[\u4e00-\u9fff]+")
# What may follow the word that says what it is: `password_confirmation`, `api_key_2`, `password_hash`.
_AFTERWARDS = frozenset(
    ("confirm", "confirmation", "again", "repeat", "hash", "value", "text", "plain", "plaintext", "string")
)
_SURE = late_pattern(
    r"(?:password|passwort|passwd|passphrase|passcode|mysqlpwd|secrets?"
    r"|(?:api|secret|private|access|auth|encryption|signing|master)keys?"
    r"|(?:access|auth|refresh|bearer|api|oauth|bot|personal|private)token"
    r"|(?:user|db|root|admin|smtp|ftp|mail|mysql|pg|postgres|redis|proxy)pass"
    r"|密码|口令|密钥|令牌)\Z"
)
_SURE_WORDS = frozenset(("pwd", "pswd", "pw", "otp", "cvv", "cvc", "jwt"))
_LIKELY = late_pattern(
    r"(?:credentials?|authorization|cookies?|passwords"
    r"|(?:account|subscription|shared|client|consumer|webhook|hmac|deploy|storage|app|service|admin|ssh)key)\Z"
)
_LIKELY_WORDS = frozenset(("token", "auth", "pass", "bearer"))
# A token that turns a page, marks a place in a text, or names a request.
_HARMLESS_TOKENS = _words(
    "page next continuation cursor sync start end eos bos pad unk stop mask sep cls special resume scroll "
    "idempotency client cancel dedup prev previous pagination max min per first last new total request"
)
_PASSWORDS = ("pass", "pwd", "pswd", "pw", "密码", "口令")


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> Kind:
    """What a key, variable, header or option of this name holds."""
    words = [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:])]
    while len(words) > 1 and (words[-1] in _AFTERWARDS or words[-1].isdigit()):
        words.pop()
    if not words:
        return ""
    last, whole = words[-1].rstrip("0123456789"), "".join(words).rstrip("0123456789")
    if last == "token" and not _HARMLESS_TOKENS.isdisjoint(words[:-1]):
        return ""
    if last in _SURE_WORDS or _SURE.search(whole):
        return "sure"
    return "likely" if last in _LIKELY_WORDS or _LIKELY.search(whole) else ""


def is_password(name: str) -> bool:
    """May its value have blanks, be digits alone, or begin like a path?"""
    return any(word in name.lower() for word in _PASSWORDS)


# ---------------------------------------------------------------- values

_PLACEHOLDER = late_pattern(
    r"[*•.\-_#?]+|x{3,}|<[^<>]*>|\[[^\[\]]*\]|\{\{?[^{}]*\}\}?|\$\{[^{}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|%\w+%"
    r"|(?:your|insert|enter|example)[-_ ].*|arn:.*|ssh-(?:rsa|ed25519|dss) .*",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_WORDS = _words(
    "null none nil undefined true false yes no on off string str text varchar char bytes int integer number object "
    "bool boolean any optional required missing invalid incorrect wrong expired hidden redacted masked unchanged "
    "changed empty blank unset set valid ok enabled disabled unknown denied n/a na error failed success secretstr "
    "pending approved granted declined accepted rejected basic bearer digest"
)
_OF_SENTENCES = _words(
    "is are was be must cannot can should may has have not no does do please required invalid incorrect wrong too "
    "field this the missing expected least most characters character short long match blank empty expired of for "
    "and or with in by to a an your was used option options flag argument value here when if from via using on at as"
)
_NAME_OF_VARIABLE = late_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_DATE = late_pattern(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?")
_FOREIGN = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_BLANK = late_pattern(r"\s")
_DIGIT = late_pattern(r"\d")
_LETTER = late_pattern(r"[^\W\d_]")
_SYMBOL = late_pattern(r"[!@#$%^*+~?]")
_PATHS = ("/", "~/", "./", "../", "C:\\", "file:")


def is_secret_value(name: str, value: str, kind: Kind) -> bool:
    """Is this text, given as the value of a name of this kind, a secret?"""
    if not value.strip() or is_placeholder(value):
        return False
    if kind == "likely":
        return looks_random(value) or ("cookie" in name.lower() and "=" in value and len(value) >= 8)
    if _FOREIGN.search(value):  # 密码不能为空: what is said of it
        return False
    if _BLANK.search(value.strip()):
        words = re.findall(r"[a-z]+", value.lower()[:200])
        return is_password(name) and len(words) > 1 and _OF_SENTENCES.isdisjoint(words)
    return not (value.startswith(_PATHS) and ("pass" not in name.lower()))


def is_placeholder(value: str) -> bool:
    """`***`, `<token>`, `${VAR}`, `required`, `YOUR_API_KEY`, `DB_PASSWORD`: what stands for a value."""
    short = value.strip()
    if short.lower().rstrip(".!") in _PLAIN_WORDS or _PLACEHOLDER.fullmatch(short[:200]):
        return True
    return len(short) <= LONGEST_NAME and bool(_NAME_OF_VARIABLE.fullmatch(short)) and secret_kind(short) != ""


def is_plain_word(word: str) -> bool:
    """A word of a sentence, or one that tells a type or a state: nobody's secret."""
    return word.lower() in _PLAIN_WORDS or word.lower() in _OF_SENTENCES


def looks_random(value: str, least: int = 10) -> bool:
    """No blank, a letter and a digit (or 24 letters in mixed case), and no date, path, address or e-mail address."""
    if len(value) < least or _BLANK.search(value) or _DATE.fullmatch(value):
        return False
    if value.startswith(_PATHS) or "://" in value or "@" in value:
        return False
    if _DIGIT.search(value):
        return bool(_LETTER.search(value))
    return len(value) >= 24 and value != value.lower() and value != value.upper()


def looks_chosen(value: str) -> bool:
    """As people choose passwords: letters with a digit or one of `!@#$%^*+~?` inside, at least five characters."""
    value = value.rstrip("!?") if value.rstrip("!?").isalpha() else value
    if len(value) < 5 or not _LETTER.search(value):
        return False
    return bool(_DIGIT.search(value) or _SYMBOL.search(value))
