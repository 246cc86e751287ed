"""Recordings as the commands take them: one or several files of recorded calls or conversations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.formats.files import read_file
from toolmem.formats.imported import Format, Imported
from toolmem.models import ToolCallResult, ToolSchema
from toolmem.readers.plain_text import counted
from toolmem.research.report.findings import BadRecord

SAMPLE_SEED = 7  # of --limit


@dataclass
class Recording:
    """What was read from all input files, rows counted through."""

    calls: list[tuple[int, ToolCallResult]] = field(default_factory=list)  # (row, call)
    denied: list[tuple[int, ToolCallResult]] = field(default_factory=list)  # stopped before they ran
    tools: dict[str, ToolSchema] = field(default_factory=dict)
    failures: list[BadRecord] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: int = 0

    def add(self, name: str, imported: Imported) -> None:
        self.names.append(name)
        if imported.format not in self.formats:
            self.formats.append(imported.format)
        denied = [(self.rows + row, call) for row, call in imported.calls if call.evaluation_status == "denied"]
        if denied:
            self.notes.append(f"{name}: {counted(len(denied), 'call')} denied before running: not judged, in no figure")
        self.denied += denied
        self.calls += [(self.rows + row, call) for row, call in imported.calls if call.evaluation_status != "denied"]
        for schema in imported.tools:
            self.tools.setdefault(schema.name, schema)
        self.failures += [
            BadRecord(where=f"{name}, record {f.index}", tool_name=f.tool_name, error=f.error)
            for f in imported.failures
        ]
        self.notes += [f"{name}: {note}" for note in imported.notes]
        self.rows += imported.rows

    def tell_conversations(self) -> None:
        """A note where calls name no conversation: what repairs a failure is told inside one conversation only."""
        without = sum(not call.conversation_id for _, call in self.calls)
        if not without:
            return
        every = without == len(self.calls)
        which = "no call names its" if every else f"{without:,} of {counted(len(self.calls), 'call')} name no"
        told = "no repairs are told" if every else "no repairs are told of these"
        self.notes.append(
            f"{which} conversation (conversation_id), and nothing else says which call followed which: {told}"
        )

    def sample(self, limit: int) -> None:
        """Keep a seeded random sample of the calls, in their order."""
        if limit < len(self.calls):
            picked = sorted(random.Random(SAMPLE_SEED).sample(range(len(self.calls)), limit))
            self.notes.append(
                f"a random sample of {limit:,} of {counted(len(self.calls), 'call')} (seed {SAMPLE_SEED})"
            )
            self.calls = [self.calls[position] for position in picked]
            self.denied = []


def read_recording(app: ToolMemApp, inputs: Sequence[str | Path], format: Format | None = None) -> Recording:
    """Read recordings; without inputs the project's own sample. Raises RequestError."""
    recording = Recording()
    if not inputs:
        from toolmem.sample import load_tools, sample_path

        recording.add("the project's own sample", read_file(sample_path(), clock=app.clock))
        for index, tool in enumerate(load_tools()):
            schema = ToolSchema.read(tool, f"tools[{index}]")
            recording.tools.setdefault(schema.name, schema)
        return recording
    seen: set[Path] = set()
    for path in inputs:
        if Path(path).resolve() in seen:
            recording.notes.append(f"{Path(path).name} is given twice: its calls are counted twice")
        seen.add(Path(path).resolve())
        recording.add(Path(path).name, read_file(path, format, clock=app.clock, time_zone=app.settings.time_zone))
    recording.tell_conversations()
    return recording
