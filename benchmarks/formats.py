"""Measure the reading and importing of other programs' recordings.

    python benchmarks/formats.py [MEGABYTES]

The packaged sample is written in each format and read back: what the format cannot hold is counted.
Payloads that real programs wrote are cut, renamed and damaged. Speed is CPU time of processes of
their own, on a transcript of Claude Code of 200 MB that is the sample again and again under new
ids, beside the bare decoders on the same lines.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from foreign import texts
from shared import PROJECT, RECORDINGS, Table, judged_calls, publish

from toolmem import ToolMem
from toolmem.errors import RequestError
from toolmem.formats.recording import read_recording
from toolmem.models.calls import ToolCallResult
from toolmem.research.backtest import later_repairs
from toolmem.research.evaluation import sample
from toolmem.research.importing import import_recordings
from toolmem.store.copying import logged_calls

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAYLOADS = PROJECT / "tests" / "formats" / "payloads"
Row = tuple[object, ...]

FIELDS: dict[str, Callable[[ToolCallResult], object]] = {
    "tool": attrgetter("tool_name"),
    "input": attrgetter("input"),
    "output": attrgetter("output"),
    "conversation": attrgetter("conversation_id"),
    "success": attrgetter("success"),
    "time": lambda call: call.create_time.astimezone(UTC).isoformat(timespec="milliseconds"),
    "duration": lambda call: None if call.time_cost is None else round(call.time_cost, 3),
    "request": attrgetter("context"),
}


def learnt(path: Path) -> tuple[Counter[object], dict[str, str]]:
    """The calls with their verdicts, and the cards, after an import."""
    with ToolMem(":memory:") as memory:
        import_recordings(memory, [path])
        logged = logged_calls(memory.services.store(), memory.workspace_name)
        calls = [each.call for each in logged]
        verdicts = Counter(
            (c.conversation_id, c.tool_name, str(c.input), c.output, c.failed) for c in calls
        )
        cards = {each.tool_name: each.guidance for each in memory.tools()}
        return verdicts, {name: re.sub(r" \(imported[^)]*\)", "", c) for name, c in cards.items()}


def round_trips(folder: Path) -> Iterator[Row]:
    (own,), _ = sample()
    calls = read_recording([own], NOW).calls
    verdicts, cards = learnt(own)
    for name, text in texts(calls).items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        found = read_recording([path], NOW).calls
        pairs = list(zip(calls, found, strict=True))
        lost = {n: sum(get(a) != get(b) for a, b in pairs) for n, get in FIELDS.items()}
        told = ", ".join(f"{field} {count}" for field, count in lost.items() if count)
        same, same_cards = learnt(path)
        agreed = f"{(verdicts & same).total()} of {verdicts.total()}"
        equal = f"{sum(same_cards.get(n) == card for n, card in cards.items())} of {len(cards)}"
        yield path.stem, len(found), told or "none", agreed, equal


# ---------------------------------------------------------------- recognition

NAMES = ("a.jsonl", "a.txt", "a.log", "a.json", "a.ndjson")


def contents(path: Path, form: str | None = None) -> tuple[list[object], list[int]]:
    """What the calls of a file are, and the lines that are named as damaged."""
    try:
        found = read_recording([path], NOW, format=form)
    except RequestError:
        return [], []
    calls = [(call.tool_name, call.input, call.output) for call in found.calls]
    return calls, [bad.line for bad in found.bad if "no JSON" in bad.error]


def recognition(folder: Path) -> Iterator[Row]:
    """Each payload under five names; of lines also cut, and with half a line in the middle.

    A document is damaged by its being cut.
    """
    for payload in sorted(PAYLOADS.glob("*.json*")):
        form = read_recording([payload], NOW).calls[0].metadata["format"]
        text, done = payload.read_text(encoding="utf-8"), Counter[str]()
        is_lines = payload.suffix == ".jsonl"
        whole = text.splitlines() if is_lines else [json.dumps(json.loads(text))]
        cuts = {len(whole), len(whole) * 3 // 4, len(whole) // 2} - {0}
        for name, cut, is_damaged in itertools.product(NAMES, cuts, (False, True)):
            middle = (cut + 1) // 2 if is_lines else 0
            damage = [whole[0][: len(whole[0]) // 2]] if is_damaged else []
            undamaged = [] if is_damaged and not is_lines else whole[:cut]
            own, path = folder / f"own{payload.suffix}", folder / name
            own.write_text("\n".join(undamaged) + "\n", encoding="utf-8")
            text = "\n".join([*undamaged[:middle], *damage, *undamaged[middle:]])
            path.write_text(text + "\n", encoding="utf-8")
            expected, _ = contents(own, form)
            calls, damaged = contents(path)
            done["with calls"] += bool(expected)
            done["recognized"] += bool(expected) and calls == expected
            done["damaged"] += is_damaged
            done["named"] += is_damaged and damaged == [middle + 1]
        recognized = f"{done['recognized']} of {done['with calls']}"
        yield payload.stem, form, recognized, f"{done['named']} of {done['damaged']}"


# ---------------------------------------------------------------- speed

# A process of its own measures another: one that this process started would count its memory, too.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.returncode)
print(done.stdout, done.stderr)
"""
LINES_BY = """
import json, sys
import msgspec
decode = {decode}
for line in open(sys.argv[1], "rb"):
    decode(line)
"""
DOCUMENT_BY = "import json, sys; json.loads(open(sys.argv[1], 'rb').read())"
READ = """
import sys
from datetime import UTC, datetime
from toolmem.formats.recording import RecordingReader
reader = RecordingReader(datetime.now(UTC))
for _ in reader.read([sys.argv[1]]):
    pass
print(reader.row, "calls")
"""


class Measured(NamedTuple):
    """A process that has ended."""

    cpu: float  # seconds
    peak: float  # MB of memory
    told: str  # how many calls, by its own words


def measured(*arguments: str) -> Measured:
    command = [sys.executable, "-c", MEASURE, sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
    figures, _, told = done.stdout.partition("\n")
    cpu, peak, code = figures.split()
    assert code == "0", told
    calls = re.search(r"^[\d,]+ (new )?calls(; [\d,]+ were there already)?", told, re.M)
    return Measured(float(cpu), float(peak), calls[0] if calls else "")


def again_and_again(size: int, text: str) -> Iterator[str]:
    """So many bytes: the lines of a text, each time with new ids and conversations."""
    for turn in itertools.count():
        keys = '"(sessionId|uuid|id|tool_use_id|traceId)": "'
        for line in re.sub(keys, rf'"\1": "{turn}-', text).splitlines(keepends=True):
            yield line
            size -= len(line.encode())
            if size <= 0:
                return


def speed(folder: Path, size: int) -> Iterator[Row]:
    """CPU time and peak memory of reading and importing, a process each."""
    written = texts(read_recording(sample()[0], NOW).calls)
    path, document = str(folder / "session.jsonl"), str(folder / "export.json")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(again_and_again(size, written["claude_code.jsonl"]))
    with open(document, "w", encoding="utf-8") as file:
        file.write('{"data": [')
        file.write(",".join(again_and_again(size // 2, written["langfuse.jsonl"])))
        file.write("]}")
    toolmem = ("-m", "toolmem", "import", path, "--store", str(folder / "memory.db"))
    work = (
        ("lines by json.loads", ("-c", LINES_BY.format(decode="json.loads"), path), "", ""),
        ("  by msgspec", ("-c", LINES_BY.format(decode="msgspec.json.decode"), path), "", ""),
        ("  read as calls", ("-c", READ, path), "", "120"),
        ("  toolmem import", toolmem, "", "120"),
        ("  again, unchanged", toolmem, "0.5", "120"),
        ("  again, all of it (--again)", (*toolmem, "--again"), "", "120"),
        ("a JSON document by json.loads", ("-c", DOCUMENT_BY, document), "", ""),
        ("  read as calls", ("-c", READ, document), "", ""),
    )
    beside = 0.0
    for name, arguments, seconds, peak in work:
        found = measured(*arguments)
        is_document, is_bare = document in arguments, name.endswith("json.loads")
        megabytes = os.path.getsize(document if is_document else path) / 1e6
        beside = found.cpu if is_bare else beside
        yield (
            name, f"{megabytes:.0f}", found.cpu, seconds, 1000 * found.cpu / megabytes,
            found.cpu / beside, f"{found.peak:.0f}", peak, found.told,
        )  # fmt: skip


def figures() -> Iterator[Row]:
    """What the first page of an import says of each recording."""
    for name in ("sample", *RECORDINGS):
        found = later_repairs(judged_calls(name))
        counts = (found.calls, found.conversations, found.repaired, found.known)
        yield name, *counts, found.named, found.low, found.high


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 200) * 1e6)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trips = Table(
            "The packaged sample written in a format and read back",
            ("format", "calls", "differ", "same verdict", "same card"),
            round_trips(folder),
        )
        known = Table(
            "Payloads, whole and cut, under five names, with and without a damaged line",
            ("payload", "format", "recognized", "damaged line named"),
            recognition(folder),
        )
        columns = ("work", "MB", "CPU s", "goal", "CPU ms a MB", "beside json.loads", "peak MB")
        costs = Table(
            "A transcript of Claude Code", (*columns, "goal", "says"), speed(folder, size)
        )
        repairs = Table(
            "Failures of the newer half whose repair guidance from the older half names",
            ("recording", "calls", "conversations", "repaired", "known", "named", "low", "high"),
            figures(),
        )
        publish("formats", "Recordings of other programs", trips, known, costs, repairs)


if __name__ == "__main__":
    main()
