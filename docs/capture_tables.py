"""Writes `rules/capture/tables.json` and `guard/words.json` from the YAML files beside them, for hooks without YAML.

python docs/capture_tables.py          write it
python docs/capture_tables.py --check  exit 1 where it is not what would be written
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "toolmem" / "rules" / "capture"
TABLES = FOLDER / "tables.json"
GUARD = FOLDER.parent.parent / "guard"
_PART = re.compile(r"\{([a-z_]+)\}")
_MOST_WORDS = 24  # that a cue is looked for by
_LONGEST_WORD = 6  # characters: beginnings are shared by more cues than whole phrases
_parser: Any = re._parser  # type: ignore[attr-defined]  # what `sre_parse` was until 3.11


def in_one_line(pattern: str) -> str:
    """A pattern without its line breaks and the spaces that begin a line."""
    return re.sub(r"\n *", "", pattern)


class Parts:
    """Patterns by name; `{name}` in one stands for the pattern of that name."""

    def __init__(self, words: dict[str, str]) -> None:
        self._words = words

    def filled(self, pattern: str) -> str:
        return _PART.sub(lambda hole: self.filled(self._words[hole[1]]), in_one_line(pattern))


def language(path: Path) -> dict[str, Any]:
    """The table of `en.yaml` or `zh.yaml` with its patterns filled in."""
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    parts = Parts(loaded["words"])
    table: dict[str, Any] = {"forms": {name: parts.filled(form) for name, form in loaded["forms"].items()}}
    for name, listed in loaded.get("verbs", {}).items():
        table[f"{name}_verbs"] = sorted(listed.split())
    if "irregular" in loaded:
        table["irregular"] = loaded["irregular"]
    table["decisions"] = {
        name: [_decision(each, table["forms"]) for each in listed] for name, listed in loaded["decisions"].items()
    }
    table["cues"] = [_cue(cue, parts, loaded.get("in_chat", {})) for cue in loaded["cues"]]
    return table


def _cue(cue: dict[str, Any], parts: Parts, in_chat: dict[str, str]) -> dict[str, Any]:
    pattern = parts.filled(cue["pattern"])
    if in_chat:
        shortened = re.compile(rf"(?:(?<=\\b)|(?<![a-z\\]))({'|'.join(in_chat)})(?![a-z'*+?])")
        pattern = shortened.sub(lambda word: f"(?:{word[1]}|{in_chat[word[1]]})", pattern)
    return {
        "id": cue["id"],
        "written": pattern,
        "strength": cue["strength"],
        "place": cue["place"],
        "needs": cue.get("needs", []),
        "words": held_words(pattern),
    }


def _decision(each: dict[str, Any], forms: dict[str, str]) -> tuple[Any, ...]:
    def asked(listed: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        named = {part: (found,) if isinstance(found, str) else tuple(found) for part, found in listed.items()}
        missing = [form for found in named.values() for form in found if form not in forms]
        if missing:
            raise SystemExit(f"a decision asks for forms that are not there: {', '.join(missing)}")
        return tuple(named.items())

    return each["then"], tuple(each.get("strength", ())), asked(each.get("if", {})), asked(each.get("unless", {}))


def shown_text(path: Path) -> dict[str, Any]:
    """The forms of `shown_text.yaml`: of lines, and by language, the alternatives of each kind as one pattern."""
    languages = yaml.safe_load(path.read_text(encoding="utf-8"))
    lines = languages.pop("lines")
    parts = Parts(lines["words"])
    table: dict[str, Any] = {"lines": {name: parts.filled(form) for name, form in lines["forms"].items()}}
    for name, loaded in languages.items():
        parts = Parts({word: f"(?:{'|'.join(listed.split(', '))})" for word, listed in loaded.pop("words").items()})
        table[name] = {kind: "|".join(f"(?:{parts.filled(form)})" for form in forms) for kind, forms in loaded.items()}
    return table


_LIFT_CUE = {"id": "", "lifts": "", "what": "", "instead": False, "needs": ""}


def lifting(path: Path) -> dict[str, Any]:
    """The table of `lifting_en.yaml` or `lifting_zh.yaml`: how a sentence takes an instruction back."""
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    parts = Parts(loaded["words"])
    cues = [(cue, parts.filled(cue["pattern"])) for cue in loaded["cues"]]
    return {
        "forms": {name: parts.filled(form) for name, form in loaded["forms"].items()},
        "lists": {name: sorted(set(listed.split())) for name, listed in loaded["lists"].items()},
        "phrases": [[parts.filled(phrase), word] for phrase, word in loaded["phrases"].items()],
        "cues": [
            {name: cue.get(name, default) for name, default in _LIFT_CUE.items()} | {"written": written}
            for cue, written in cues
        ],
    }


# ---------------------------------------------------------------- the words that a match of a pattern must hold


def held_words(pattern: str) -> tuple[str, ...]:
    """Words of which every match of the pattern holds one: where none stands in a text, it need not be tried."""
    found = _required(_parser.parse(pattern))
    if not found:
        raise SystemExit(f"no words are certain to stand in a match of {pattern}")
    found = {word[:_LONGEST_WORD] for word in found}
    return tuple(sorted(word for word in found if not any(other in word for other in found if other != word)))


def _required(parts: Iterable[Any]) -> set[str]:
    """The longest words, one of which stands in each match; empty where there are none."""
    candidates: list[set[str]] = []
    run = {""}
    for part in parts:
        exact = _exact(part)
        if exact is not None and len(run) * len(exact) <= _MOST_WORDS:
            run = {before + after for before in run for after in exact}
        else:
            candidates += [run, _inside(part)]
            run = {""}
        if str(part[0]) == "ASSERT":
            candidates.append(_required(part[1][1]))
    candidates.append(run)
    certain = [words for words in candidates if words and all(words)]
    return max(certain, key=lambda words: (min(4, *map(len, words), 4), -len(words)), default=set())


def _inside(part: Any) -> set[str]:
    kind, body = str(part[0]), part[1]
    if kind == "BRANCH":
        each = [_required(branch) for branch in body[1]]
        return set().union(*each) if all(each) else set()
    if kind == "SUBPATTERN":
        return _required(body[3])
    if kind.endswith("_REPEAT") and body[0] > 0:
        return _required(body[2])
    return set()


def _exact(part: Any) -> set[str] | None:
    """All that a part can match, or None where that is not a short list."""
    kind, body = str(part[0]), part[1]
    if kind == "LITERAL":
        return {chr(body)}
    if kind in ("AT", "ASSERT", "ASSERT_NOT"):
        return {""}
    if kind == "IN":
        return {chr(code) for op, code in body} if all(str(op) == "LITERAL" for op, _ in body) else None
    if kind == "SUBPATTERN":
        return _sequence(body[3])
    if kind == "BRANCH":
        each = [_sequence(branch) for branch in body[1]]
        return None if None in each else set().union(*(words for words in each if words is not None))
    if kind.endswith("_REPEAT") and body[1] == 1:
        once = _sequence(body[2])
        return once if once is None or body[0] == 1 else {"", *once}
    return None


def _sequence(parts: Iterable[Any]) -> set[str] | None:
    words = {""}
    for part in parts:
        exact = _exact(part)
        if exact is None or len(words) * len(exact) > _MOST_WORDS:
            return None
        words = {before + after for before in words for after in exact}
    return words


# ---------------------------------------------------------------- the file


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _entries(value: Any) -> str:
    """JSON with one entry of a table a line."""
    if isinstance(value, dict) and value:
        inner = (f"{_json(name)}:{_entries(each)}" for name, each in value.items())
    elif isinstance(value, list) and value and not isinstance(value[0], str):
        inner = map(_json, value)
    else:
        return _json(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner) + f"\n{closing}"


def tables() -> str:
    nouns = yaml.safe_load((FOLDER / "nouns.yaml").read_text(encoding="utf-8"))
    nouns["forms"] = {name: in_one_line(pattern) for name, pattern in nouns["forms"].items()}
    made = {
        "en": language(FOLDER / "en.yaml"),
        "zh": language(FOLDER / "zh.yaml"),
        "lifting": {name: lifting(FOLDER / f"lifting_{name}.yaml") for name in ("en", "zh")},
        "shown_text": shown_text(FOLDER / "shown_text.yaml"),
        "nouns": nouns,
    }
    return _entries(made) + "\n"


def guard_words() -> str:
    """The words of the guard, its forms in one line each."""
    files = ("en", "zh", "effects")
    made = {name: yaml.safe_load((GUARD / f"{name}.yaml").read_text(encoding="utf-8")) for name in files}
    for language in (made["en"], made["zh"]):
        language["forms"] = {name: in_one_line(form) for name, form in language["forms"].items()}
    return _entries(made) + "\n"


def main() -> int:
    made = {TABLES: tables(), GUARD / "words.json": guard_words()}
    if "--check" in sys.argv:
        return 0 if all(path.read_text(encoding="utf-8") == text for path, text in made.items()) else 1
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
