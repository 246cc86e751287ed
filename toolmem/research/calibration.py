"""How often tools really worked: a person labels a random sample of the calls, which corrects the judge's rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.errors import RequestError
from toolmem.flow.report import Event
from toolmem.formats.imported import Format
from toolmem.models import ToolCallResult
from toolmem.ops.judging import Judged
from toolmem.research.comparison import JudgeOnlyOp
from toolmem.research.recordings import Recording, read_recording
from toolmem.research.report.corrected_rates import CorrectedRate, corrected_rates, draw, passed_by_judge
from toolmem.research.report.label_files import LabelRow, labels_of, read_labels, write_labels

Paths = str | Path | Sequence[str | Path]


class Labelling:
    """The calls of a recording, judged as they are asked for, and the labels of a file that they belong to."""

    def __init__(self, app: ToolMemApp, recording: Recording, *, workspace: str, ignore_success: bool) -> None:
        self._app = app
        self._workspace = workspace
        self._withheld = ignore_success
        self._tools = recording.tools
        self.calls = dict(recording.calls)
        self.names = {row: call.tool_name for row, call in self.calls.items()}

    def judged(self, rows: Sequence[int]) -> dict[int, tuple[ToolCallResult, bool | None]]:
        """Of each row the call, its secrets masked, and whether the judge passed it.

        Raises ModelError where the judge was stopped.
        """
        hidden = {"success": None} if self._withheld else {}
        run = self._app.call(
            self._app.run_detailed(
                self._app.configured.bind(JudgeOnlyOp()),
                workspace_id=self._workspace,
                tool_call_results=[self.calls[row].model_copy(update={"id": None, **hidden}) for row in rows],
                tools=list(self._tools.values()),
            )
        )
        judged: Judged = run.context["judged"]
        if judged.stopped is not None:
            raise judged.stopped
        return {row: (call, passed_by_judge(call)) for row, call in zip(rows, judged.calls, strict=True)}


@contextmanager
def labelling(
    inputs: Paths = (),
    *,
    format: Format | None = None,
    ignore_success: bool = False,
    workspace: str = "default",
    config: Paths | None = None,
    overrides: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    listener: Callable[[Event], None] | None = None,
) -> Iterator[Labelling]:
    """A recording to label, or whose rates are to be corrected, with what the configuration judges by.

    `inputs`: recorded calls or conversations (none: the project's own sample). `ignore_success` withholds the recorded
    flag from the judge. Verdicts are kept in the workspace's cache, so that none is paid twice; no call is kept.

    Raises Refused before anything is judged where the input or the configuration is wrong.
    """
    app = ToolMemApp(config, overrides)
    if listener is not None:
        app.listeners.append(listener)
    with app:
        say("read")
        recording = read_recording(app, [inputs] if isinstance(inputs, str | Path) else list(inputs), format)
        if not recording.calls:
            raise RequestError("input: there is no call to judge", field="input")
        say("judge")
        yield Labelling(app, recording, workspace=workspace, ignore_success=ignore_success)


def draw_labels(work: Labelling, number: int, out: Path, *, seed: int = 0) -> list[LabelRow]:
    """Have `number` calls in the file `out`, drawn at random; what it holds already stays. Answers its rows.

    Raises RequestError where `out` holds something else, or labels of another recording.
    """
    kept = read_labels(out) if out.exists() else []
    labels_of(kept, work.names, out)
    drawn = draw(sorted(work.calls), number - len(kept), seed, but=[row.index for row in kept])
    judged = work.judged(drawn) if drawn else {}
    rows = [*kept, *(LabelRow.of(row, *judged[row]) for row in drawn)]
    write_labels(out, rows)
    return rows


def set_label(rows: list[LabelRow], at: int, worked: bool, out: Path) -> None:
    """Note what a person said of a row, in the file as well."""
    rows[at] = replace(rows[at], label=worked)
    write_labels(out, rows)


def labels_in(recording: Recording, labels: Path) -> dict[int, bool]:
    """By row whether the call worked. Raises RequestError where the file is no file of labels of this recording."""
    return labels_of(read_labels(labels), {row: call.tool_name for row, call in recording.calls}, labels)


def calibrate(work: Labelling, labels: Path) -> list[CorrectedRate]:
    """The rates by the judge and corrected by the labels of a file: of all tools, then of each.

    Raises RequestError where the file has no label, or is of another recording.
    """
    known = labels_of(read_labels(labels), work.names, labels)
    if not known:
        raise RequestError(
            f"labels: {labels} has no label yet: fill the column `label` (1 worked, 0 not), or answer "
            "`toolmem judge label --ask`",
            field="labels",
        )
    judged = work.judged(sorted(work.calls))
    return corrected_rates(((row, call.tool_name, passed) for row, (call, passed) in judged.items()), known)
