"""The cards that the writer without a model makes of a fixed set of calls, and the number that is its version.

python tests/snapshots/golden_cards.py          print what changed
python tests/snapshots/golden_cards.py --write  write it down; refused where a card changed and the number did not

Guidance is kept under the writer's version, and written anew only under another one. So whoever changes what a card
says raises `DATA_DRIVEN_RULES` in `toolmem/guidance/counted/data_driven.py`. The calls are the sample recording and
some planted ones, judged by their flags alone, so that the judge has no part in it; a line stands here by its kind and
a fingerprint.
"""

from __future__ import annotations

import json
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

from toolmem.guidance.counted.data_driven import DATA_DRIVEN_RULES, DataDrivenWriter
from toolmem.models import Guidance, Language, ToolCallResult
from toolmem.readers.error_classes import error_class_of
from toolmem.sample import load_records

FILE = Path(__file__).parent / "golden_cards.json"
WINDOW = 30
REMEDY = (
    "cards say something else under the same number, so that stores would go on with old ones:\n"
    "raise the number DATA_DRIVEN_RULES in toolmem/guidance/counted/data_driven.py, then run\n"
    "`python tests/snapshots/golden_cards.py --write`"
)
NOT_WRITTEN = "run `python tests/snapshots/golden_cards.py --write`"


def golden() -> dict[str, Any]:
    """The number, and the lines of each tool's card in each language."""
    tools: dict[str, list[ToolCallResult]] = {}
    for record in [*load_records(), *planted()]:
        known = tools.setdefault(record["tool_name"], [])
        known.append(judged(record, len(known)))
    written = {
        f"{tool} {language}".strip(): [
            f"{line.kind} {fingerprint(line.text)}" for line in card(tool, calls, language).claims
        ]
        for tool, calls in sorted(tools.items())
        for language in ("", "zh")
    }
    return {"data_driven_rules": DATA_DRIVEN_RULES, "cards": written}


def planted() -> list[dict[str, Any]]:
    """A search that finds nothing by capitals, and a translation that knows no language `xx`."""
    queries = [f"apple {i}" if i % 3 else f"APPLE {i}" for i in range(24)]
    calls = [("find_goods", {"query": each}, f"[{each!r}]" if each.islower() else "[]", True) for each in queries]
    for i in range(24):
        works = i % 3 > 0
        given = {"language": "en" if works else "xx", "text": f"t{i}"}
        calls.append(("say", given, "said" if works else "Error: unknown language", works))
    return [
        {
            "tool_name": tool,
            "id": f"p{i}",
            "input": given,
            "output": output,
            "success": success,
            "create_time": f"2026-01-01T00:{i:02d}:00Z",
            "metadata": {"conversation_id": f"k{i // 3}"},
        }
        for i, (tool, given, output, success) in enumerate(calls)
    ]


def judged(record: dict[str, Any], seq: int) -> ToolCallResult:
    """A call as a judge leaves it that believes the flag; an answer with nothing in it failed silently."""
    failed = not record["success"] or str(record["output"]).strip() in ("", "[]", "{}")
    seen = {"score": float(not failed), "evaluation_status": "ok", "execution_failed": not record["success"]}
    kind = error_class_of(str(record["output"])) if not record["success"] else ""
    return ToolCallResult.model_validate({**record, **seen, "seq": seq, "error_class": kind})


def card(tool: str, calls: list[ToolCallResult], language: Language) -> Guidance:
    """As it is after a summary of each window, the last one shorter than the others."""
    writer, history = DataDrivenWriter(language), None
    for start in range(0, len(calls), WINDOW):
        made = writer.compose(tool, calls[start : start + WINDOW], history)
        history = made.history
    return made


def fingerprint(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()


def problems(written: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is wrong with the state of things, the remedy first; nothing where all is as written down."""
    changed = [key for key, lines in written["cards"].items() if now["cards"].get(key, lines) != lines]
    if changed and now["data_driven_rules"] <= written["data_driven_rules"]:
        return [REMEDY, *(f"card {key}" for key in changed)]
    return [NOT_WRITTEN] if now != written else []


if __name__ == "__main__":
    state = golden()
    told = problems(json.loads(FILE.read_text("utf-8")), state) if FILE.is_file() else [NOT_WRITTEN]
    if "--write" in sys.argv and told[:1] != [REMEDY]:
        FILE.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        print("\n".join(told) or "nothing changed")
        sys.exit(1 if "--write" in sys.argv else 0)
