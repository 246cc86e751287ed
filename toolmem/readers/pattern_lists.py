"""Lists of words and patterns from text files.

Each line of a file is one regular expression, and a section `[name]` matches where any of its lines does. `{{name}}`
stands for a section above; a line that begins with "# " is a comment.
"""

from __future__ import annotations

from pathlib import Path

from toolmem.late import late_pattern

_SECTION = late_pattern(r"\[([a-z_ ]+)\]")
_NAMED = late_pattern(r"\{\{([a-z_ ]+)\}\}")


def sections(file: Path) -> list[tuple[str, str]]:
    """(name, `(?:line|line|...)`) of each section of a file, in its order."""
    found: list[tuple[str, list[str]]] = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if section := _SECTION.fullmatch(line):
            found.append((section[1], []))
        elif line and not line.startswith("# "):
            found[-1][1].append(_NAMED.sub(lambda named: _either(dict(found)[named[1]]), line))
    return [(name, _either(lines)) for name, lines in found]


def _either(lines: list[str]) -> str:
    return f"(?:{'|'.join(lines)})"
