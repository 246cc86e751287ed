"""Words of demands and of tools: what is done (families of verbs), to what (things), and what only fills a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from toolmem.guard.word_lists import table, turned, words

FAMILIES = turned("families")
NEIGHBOURS = table("neighbours")
READING = words("reading")
DOINGS = {thing: next(iter(families)) for thing, families in turned("doings").items()}
LIGHT = words("light")
THINGS = turned("things")
CONTENT = words("content")
AMOUNTS = words("amounts")
FILLERS = words("fillers")
NOT_NAMES = words("not_names")
APPOSITIONS = words("appositions")
TIMES = words("times")


def base_forms(word: str) -> Iterable[str]:
    """What a word may be a form of: emails, emailing, emailed -> email."""
    yield word
    for ending, instead in (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ing", ""),
        ("ing", "e"),
        ("ed", ""),
        ("ed", "e"),
        ("d", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            stem = word[: -len(ending)] + instead
            yield stem
            if not instead and len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]


def families_of(word: str) -> frozenset[str]:
    """The families of a verb, in whatever form it stands."""
    return next((FAMILIES[form] for form in base_forms(word) if form in FAMILIES), frozenset())


def things_of(word: str) -> frozenset[str]:
    """The thing that a word names, under its listed name; the word itself in its singular where it is not listed."""
    found = next((THINGS[form] for form in base_forms(word) if form in THINGS), None)
    return found if found is not None else frozenset((word[:-1] if word.endswith("s") and len(word) > 3 else word,))
