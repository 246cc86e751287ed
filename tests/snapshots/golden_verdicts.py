"""The rule-based judge's verdicts on a fixed set of calls, and the number that is its identity.

python tests/snapshots/golden_verdicts.py          print what changed
python tests/snapshots/golden_verdicts.py --write  write it down; refused where a verdict changed and the number did not

A verdict is kept under the judge's identity and never made twice. So whoever changes what the judge says raises
`RULE_BASED_JUDGE` in `toolmem/judge/rule_based.py`. The calls are ours: `tests/judge/outputs.jsonl` (outputs alone) and
`tests/judge/golden_calls.jsonl` (with flags and schemas). The tables of words belong to the judge: a section stands
here by a fingerprint of its patterns, so that a new pattern that no call shows is noticed, and a comment is not.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from toolmem.judge.rule_based import RULE_BASED_JUDGE, RuleBasedCheck
from toolmem.models import ToolCallResult, ToolSchema
from toolmem.readers.pattern_lists import sections

FILE = Path(__file__).parent / "golden_verdicts.json"
ROOT = Path(__file__).resolve().parents[2]
CALLS = (ROOT / "tests/judge/outputs.jsonl", ROOT / "tests/judge/golden_calls.jsonl")
TABLES = ("judge/wording.txt", "judge/programs.txt", "readers/error_classes.txt")
REMEDY = (
    "the rule-based judge says something else under the same number, so that stores would go on with old verdicts:\n"
    "raise the number RULE_BASED_JUDGE in toolmem/judge/rule_based.py, then run\n"
    "`python tests/snapshots/golden_verdicts.py --write`"
)
NOT_WRITTEN = "run `python tests/snapshots/golden_verdicts.py --write`"


def golden() -> dict[str, Any]:
    """The number, the tables' fingerprints and the verdict of each call, by the call's own fingerprint."""
    rows = [json.loads(line) for file in CALLS for line in file.read_text("utf-8").splitlines()]
    return {
        "rule_based_judge": RULE_BASED_JUDGE,
        "tables": {f"{table}: {name}": mark for table in TABLES for name, mark in fingerprints(table).items()},
        "verdicts": {key_of(row): verdict_of(row) for row in rows},
    }


def fingerprints(table: str) -> dict[str, str]:
    """Of the patterns of each section; of one that comes twice, of both."""
    patterns: dict[str, str] = {}
    for name, pattern in sections(ROOT / "toolmem" / table):
        patterns[name] = patterns.get(name, "") + pattern
    return {name: fingerprint(pattern) for name, pattern in patterns.items()}


def key_of(row: dict[str, Any]) -> str:
    """The tool's name, for people, and what tells the call from others."""
    given = [row.get(name) for name in ("tool_name", "input", "output", "success", "tool")]
    return f"{row['tool_name']} {fingerprint(json.dumps(given, sort_keys=True))}"


def verdict_of(row: dict[str, Any]) -> list[Any]:
    """[failed, score, error class, evaluation, fingerprint of the summary]."""
    given = {name: row[name] for name in ("tool_name", "input", "output", "success") if name in row}
    call = ToolCallResult(create_time=datetime(2025, 1, 1, tzinfo=UTC), **given)
    found = RuleBasedCheck().check(call, ToolSchema(**row["tool"]) if "tool" in row else None)
    return [found.execution_failed, found.score, found.error_class, found.evaluation, fingerprint(found.summary)]


def fingerprint(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()


def problems(written: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is wrong with the state of things, the remedy first; nothing where all is as written down."""
    lines = [
        f"{kind} {key}: {said[key]}, was {was}"
        for kind, said in (("table", now["tables"]), ("verdict", now["verdicts"]))
        for key, was in written[f"{kind}s"].items()
        if key in said and said[key] != was
    ]
    tables = now["tables"].keys() ^ written["tables"].keys()
    lines += [f"table {name}: {'new' if name in now['tables'] else 'gone'}" for name in sorted(tables)]
    if lines and now["rule_based_judge"] <= written["rule_based_judge"]:
        return [REMEDY, *lines]
    return [NOT_WRITTEN] if now != written else []


def as_text(found: dict[str, Any]) -> str:
    """JSON with a line for each verdict."""
    verdicts = ",\n".join(f"  {_json(key)}: {_json(said)}" for key, said in found["verdicts"].items())
    tables = ",\n".join(f"  {_json(key)}: {_json(mark)}" for key, mark in found["tables"].items())
    number = found["rule_based_judge"]
    return f'{{\n "rule_based_judge": {number},\n "tables": {{\n{tables}\n }},\n "verdicts": {{\n{verdicts}\n }}\n}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    state = golden()
    told = problems(json.loads(FILE.read_text("utf-8")), state) if FILE.is_file() else [NOT_WRITTEN]
    if "--write" in sys.argv and told[:1] != [REMEDY]:
        FILE.write_text(as_text(state), encoding="utf-8")
    else:
        print("\n".join(told) or "nothing changed")
        sys.exit(1 if "--write" in sys.argv else 0)
