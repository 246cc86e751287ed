"""Nearest names, for errors that say what would be right."""

from __future__ import annotations

from collections.abc import Iterable

_BEGINNING = 3  # characters
_LISTED = 12  # so many known names are listed where none is near


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name most like `name` (case aside), or the only one that it begins; None where none is near."""
    import difflib  # only where something is wrong

    known = {known.lower(): known for known in sorted(names, reverse=True)}
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if not found and len(name) >= _BEGINNING:
        begun = [other for other in known if other.startswith(name.lower())]
        found = begun if len(begun) == 1 else []
    return known[found[0]] if found else None


def hint(name: str, names: Iterable[str]) -> str:
    """`did you mean 'x'?`, or the known names where none is near."""
    known = sorted(set(names))
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near!r}?"
    if not known:
        return "nothing is known here"
    more = f", ... ({len(known)} in all)" if len(known) > _LISTED else ""
    return "known: " + ", ".join(known[:_LISTED]) + more
