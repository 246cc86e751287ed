"""InstructionBench: which sentences become rules, on which tools, and which must not.

    python benchmarks/instructions.py [--json FILE] [--errors] [--data FOLDER]

Sets, each of them labelled by its one author by the definition of an instruction in the documentation:

* `instruction_sentences.csv` (own): its part "dev" was looked at while the detector was written, its part "unseen",
  chosen by a hash of the id, was not.
* `instruction_sentences_b.csv` (own b): written by a second author before that author had read the detector; a quarter
  of it names other catalogues of tools. Its part "dev" was then used to improve the detector. The figures of "unseen"
  were read three times, before that work, after it and after the errors of "own c" had been used, and its errors were
  never listed; but it was written by the same hand
  as "dev" (some sentences have a near relative or a translation there), so its figures flatter the detector more
  than sentences of somebody else would.
* `instruction_sentences_c.csv` (own c): written by an author who had not read the cues at that time. First measured
  before any of its errors were seen: precision 1.0 in both languages, recall 0.73 in English (26 standing) and 0.88 in
  Chinese (24 standing). Its errors were then used to write cues, so its figures of today measure nothing new.
* `instruction_sentences_d.csv` (own d): by the author of "own c", written on purpose in other forms after those cues
  were there, without having read them; nobody has looked at its errors.
* `written.csv`, where the folder of recorded data is there: a third author; the half with an even hash of the id was
  looked at, the other half was not (of this file the second author saw 40 rows of either half, without results).
* `user_sentences.csv`: recorded messages, mostly hard negatives; captured for good or for the session counts alike,
  because its "true" covers both.

Figures: precision and recall of standing instructions, share of session instructions pinned for ever, and of those
caught as session instructions; how often the tools are exactly right among the standing instructions found. The
baseline is upstream's documented pattern, run on the same sentences: split at . ! ? and line breaks, a sentence that
holds "never ", "don't ", "do not " or "stop ...ing" is an instruction; its tool is the first whose name is a substring,
else the first that ran.

`--errors` lists what goes wrong, never on an unseen part: it stays a measure only as long as nobody looks.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolmem.rules.capture.instructions import find_instructions
from toolmem.rules.identity import UNSCOPED

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data" / "decrees"
CATALOGUE = (
    "send_email",
    "read_inbox",
    "slack_post_message",
    "calendar_create_event",
    "calendar_delete_event",
    "shell",
    "bash_exec",
    "browser_open",
    "web_search",
    "http_request",
    "read_file",
    "write_file",
    "delete_file",
    "sql_execute",
    "drop_table",
    "git_push",
    "git_force_push",
    "create_payment",
    "issue_refund",
    "cancel_order",
    "book_flight",
    "transfer_to_human",
    "create_ticket",
    "deploy_service",
    "translate_text",
)
OWN = {"own": "instruction_sentences.csv", "own b": "instruction_sentences_b.csv"}
FIRST_SIGHT = {"own c": "instruction_sentences_c.csv", "own d unseen": "instruction_sentences_d.csv"}
GOALS = {"precision": 0.97, "recall": 0.9, "right_tools": 0.85, "session_pinned": 0.15}

Found = tuple[str, frozenset[str]]  # (standing, session or none; the tools)
Detector = Callable[[str, Sequence[str], Sequence[str]], Found]


@dataclass(frozen=True)
class Labelled:
    id: str
    lang: str
    message: str
    kind: str
    tools: frozenset[str]
    ran: tuple[str, ...]
    catalogue: tuple[str, ...]


def ours(message: str, ran: Sequence[str], catalogue: Sequence[str]) -> Found:
    found = find_instructions(message, ran=ran, catalogue=catalogue)
    kind = "standing" if found.standing else "session" if found.session else "none"
    instructions = found.standing or found.session
    return kind, frozenset(name for instruction in instructions for name in instruction.tool_names)


def upstream(message: str, ran: Sequence[str], catalogue: Sequence[str]) -> Found:
    tools: set[str] = set()
    for sentence in re.split(r"[.!?\n]", message.lower()):
        if any(cue in sentence for cue in ("never ", "don't ", "do not ")) or re.search(r"stop \w+ing", sentence):
            named = [name for name in (*ran, *catalogue) if name.lower() in sentence]
            tools.add((named or list(ran) or [UNSCOPED])[0])
    return ("standing" if tools else "none"), frozenset(tools)


def read_labelled(path: Path) -> list[tuple[Labelled, dict[str, str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (
                Labelled(
                    id=row["id"],
                    lang=row["lang"],
                    message=row["message"],
                    kind=row["kind"],
                    tools=frozenset(row["tools"].split("|")) - {""},
                    ran=tuple(name for name in row["ran"].split("|") if name),
                    catalogue=tuple((row.get("catalogue") or "|".join(CATALOGUE)).split("|")),
                ),
                row,
            )
            for row in csv.DictReader(file)
        ]


def even_hash(identifier: str) -> bool:
    return int(hashlib.sha256(identifier.encode()).hexdigest(), 16) % 2 == 0


def labelled_sets(data: Path) -> dict[str, list[Labelled]]:
    sets = {}
    for title, name in OWN.items():
        own = read_labelled(HERE / name)
        for part in ("dev", "unseen"):
            sets[f"{title} {part}"] = [item for item, row in own if row["split"] == part]
    for title, name in FIRST_SIGHT.items():
        sets[title] = [item for item, _ in read_labelled(HERE / name)]
    if (data / "written.csv").is_file():
        written = [item for item, _ in read_labelled(data / "written.csv")]
        sets["written dev"] = [item for item in written if even_hash(item.id)]
        sets["written unseen"] = [item for item in written if not even_hash(item.id)]
    return sets


def measure(items: Sequence[Labelled], detector: Detector) -> tuple[dict[str, Any], list[str]]:
    counts: Counter[tuple[str, str]] = Counter()
    right = 0
    errors = []
    for item in items:
        kind, tools = detector(item.message, item.ran, item.catalogue)
        counts[item.kind, kind] += 1
        right += item.kind == kind == "standing" and tools == item.tools
        if kind != item.kind or (kind != "none" and tools != item.tools):
            wanted = f"{item.kind} {'|'.join(sorted(item.tools))}"
            shown = item.message.replace("\n", " / ")[:140]
            errors.append(f"{item.id}  {wanted:40} -> {kind} {'|'.join(sorted(tools))}\n      {shown}")
    found = counts["standing", "standing"]
    captured = sum(counts[kind, "standing"] for kind in ("standing", "session", "none"))
    standing = sum(counts["standing", kind] for kind in ("standing", "session", "none"))
    session = sum(counts["session", kind] for kind in ("standing", "session", "none"))
    return {
        "sentences": len(items),
        "standing": standing,
        "precision": share(found, captured),
        "recall": share(found, standing),
        "right_tools": share(right, found),
        "session": session,
        "session_pinned": share(counts["session", "standing"], session),
        "session_caught": share(counts["session", "session"], session),
    }, errors


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def user_messages(path: Path, detector: Detector) -> dict[str, Any]:
    """Recorded sentences: how many are captured, for good or for the session, and how many of these rightly."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    catalogue = sorted({row["tool"] for row in rows if row["tool"]})
    captured = [row for row in rows if detector(row["sentence"], (), catalogue)[0] != "none"]
    true = sum(row["is_decree_about_tool_use"] == "true" for row in captured)
    return {"sentences": len(rows), "captured": len(captured), "true": true, "false": len(captured) - true}


def show(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--errors", action="store_true", help="list what goes wrong, but for the unseen parts")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with written.csv and user_sentences.csv")
    parser.add_argument("--quick", action="store_true", help="for the common runner: nothing to shorten here")
    options = parser.parse_args()
    names = ("precision", "recall", "right_tools", "session_pinned", "session_caught")
    table = [["set", "language", "detector", "sentences", *names]]
    figures: list[dict[str, Any]] = []
    listed: list[str] = []
    for title, items in labelled_sets(options.data).items():
        for lang in ("en", "zh"):
            part = [item for item in items if item.lang == lang]
            for detector in (ours, upstream):
                measured, errors = measure(part, detector)
                figures.append({"set": title, "language": lang, "detector": detector.__name__, **measured})
                cells = [f"{measured[name]:.3f}" if measured[name] is not None else "-" for name in names]
                table.append([title, lang, detector.__name__, str(len(part)), *cells])
                if not title.endswith("unseen"):
                    listed += [f"{detector.__name__}, {title}, {lang}: {error}" for error in errors]
    show(table)
    print(
        "goals: "
        + ", ".join(f"{name} {'<=' if name == 'session_pinned' else '>='} {goal}" for name, goal in GOALS.items())
    )
    recorded = options.data / "user_sentences.csv"
    if recorded.is_file():
        for detector in (ours, upstream):
            counted = user_messages(recorded, detector)
            figures.append({"set": "user_sentences", "detector": detector.__name__, **counted})
            print(f"user_sentences, {detector.__name__}: " + ", ".join(f"{name} {n}" for name, n in counted.items()))
    else:
        print(f"written.csv and user_sentences.csv are left out: there is no folder {options.data.name!r} of them")
    if options.errors:
        print("\n" + "\n".join(listed))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
