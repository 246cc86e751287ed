"""What a simple command prints, where its text alone says it: `echo`, `printf`, decoders, and what passes input on."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence

from toolmem.guard.shell_words import UNKNOWN, unescaped
from toolmem.late import late_pattern

_LONGEST = 20_000  # characters
_DIRECTIVE = late_pattern(r"%(?:%|[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z])")


def output_of(words: Sequence[str], given: str | None) -> str | None:
    """What a command prints when it reads `given`; None where that is not known."""
    if not words or any(UNKNOWN in word or "$" in word for word in words):
        return None
    read = _PRINTERS.get(words[0].rsplit("/", 1)[-1])
    if read is None or (given is not None and len(given) > _LONGEST):
        return None
    printed = read(words[1:], given)
    return printed if printed is not None and len(printed) <= _LONGEST else None


def _echo(words: Sequence[str], given: str | None) -> str | None:
    at = 0
    while at < len(words) and re.fullmatch(r"-[neE]+", words[at]):
        at += 1
    options = "".join(words[:at])
    text = " ".join(words[at:])
    return (unescaped(text) if "e" in options else text) + ("" if "n" in options else "\n")


def _printf(words: Sequence[str], given: str | None) -> str | None:
    if not words or words[0].startswith("-"):
        return None
    values = iter(words[1:])

    def filled(found: re.Match[str]) -> str:
        if found.group() == "%%":
            return "%"
        value = next(values, "")
        return unescaped(value) if found.group()[-1] == "b" else value

    form = unescaped(words[0])
    printed = _DIRECTIVE.sub(filled, form)
    for value in values:  # the form is used again for what is left
        printed += _DIRECTIVE.sub(lambda found, value=value: value, form)  # type: ignore[misc]
        if len(printed) > _LONGEST:
            return None
    return printed


def _passed_on(words: Sequence[str], given: str | None) -> str | None:
    return given if all(word.startswith("-") for word in words) else None


def _turned(words: Sequence[str], given: str | None) -> str | None:
    return None if given is None or words else "\n".join(line[::-1] for line in given.split("\n"))


def _base64(words: Sequence[str], given: str | None) -> str | None:
    decodes = any(re.fullmatch(r"-[a-z]*[dD][a-z]*|--decode", word) for word in words)
    return _decoded(base64.b64decode, given) if decodes else None


def _base32(words: Sequence[str], given: str | None) -> str | None:
    return _decoded(base64.b32decode, given) if {"-d", "--decode"} & set(words) else None


def _xxd(words: Sequence[str], given: str | None) -> str | None:
    options = "".join(words)
    return _decoded(bytes.fromhex, given) if "r" in options and "p" in options else None


def _openssl(words: Sequence[str], given: str | None) -> str | None:
    if "-d" not in words or not {"base64", "-base64", "-a"} & set(words) or "-in" in words:
        return None
    return _decoded(base64.b64decode, given)


def _decoded(decode: Callable[[str], bytes], given: str | None) -> str | None:
    if given is None:
        return None
    try:
        return decode("".join(given.split())).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _which(words: Sequence[str], given: str | None) -> str | None:
    """The program that is looked for, as it is called."""
    named = [word for word in words if not word.startswith("-")]
    return named[-1] + "\n" if named else None


_PRINTERS: Mapping[str, Callable[[Sequence[str], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _passed_on,
    "tee": lambda words, given: given,
    "rev": _turned,
    "base64": _base64,
    "base32": _base32,
    "xxd": _xxd,
    "openssl": _openssl,
    "which": _which,
    "command": lambda words, given: _which(words, given) if words[:1] in (["-v"], ["-V"]) else None,
    "type": lambda words, given: _which(words, given) if words[:1] in (["-p"], ["-P"]) else None,
}
