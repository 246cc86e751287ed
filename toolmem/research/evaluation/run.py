"""An evaluation from files to a report, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.config.layers import DEFAULT
from toolmem.config.loading import read
from toolmem.errors import RequestError
from toolmem.flow.progress import ProgressLine, in_notebook
from toolmem.flow.report import Event
from toolmem.formats.imported import Format
from toolmem.research.calibration import labels_in
from toolmem.research.evaluation.evaluator import Evaluator
from toolmem.research.evaluation.folder import (
    WORKSPACE,
    empty,
    make_ready,
    note_as_own,
    refuse_foreign,
    store_in,
    write_report,
)
from toolmem.research.recordings import read_recording
from toolmem.research.report.findings import Evaluation


def evaluate(
    inputs: str | Path | Sequence[str | Path] = (),
    out: str | Path = "report",
    *,
    format: Format | None = None,
    ignore_success: bool = False,
    limit: int | None = None,
    workspace: str | None = None,
    config: str | Path | Sequence[str | Path] | None = None,
    overrides: Sequence[str] = (),
    reports: str | Path | None = None,
    labels: str | Path | None = None,
    force: bool = False,
    say: Callable[[str], None] | None = None,
    listener: Callable[[Event], None] | None = None,
) -> Evaluation:
    """Judge recordings, distil guidance, and write the report into the folder `out`. Also for notebooks.

    `inputs`: recorded calls or conversations (none: the project's own sample). Works in a fresh `out/memory.db` unless
    the configuration names a store or `workspace` (else "default") is given. `limit` judges a seeded random sample.
    `ignore_success` withholds the recorded flag from the judge. `labels`: what `toolmem judge label` wrote, filled; the
    report then has the rates corrected by it. `reports`: a folder that gets the RunReport of each flow. `force`
    overwrites files in `out` that no evaluation wrote. `say` is told each phase, `listener` gets the flows' events (how
    many calls are judged: of the whole evaluation); without both, a notebook's cell shows a line that moves.

    A run that was killed, or stopped by its budget, is taken up by running it again: what was judged is not paid twice.

    Raises Refused before anything is done where the input or the configuration is wrong.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"out: {folder} is not a folder", field="out")
    if not force:
        refuse_foreign(folder)
    files = [config] if isinstance(config, str | Path) else list(config or ())
    chosen = read(files, overrides).origins.all_of(("vector_store", "default"))
    fresh = workspace is None and chosen <= {DEFAULT}
    # Nobody asks the guard of a store that is made for one report, so it learns nothing either.
    app = ToolMemApp(files, [*overrides, store_in(folder), "guard=off"] if fresh else overrides)
    app.services.count_prompts = True
    app.check_models("add_tool_call_result", "summary_tool_memory")
    with ExitStack() as live:
        if say is None and listener is None and in_notebook():
            line = live.enter_context(ProgressLine(notebook=True))
            say, listener = line.phase, line
        say = say or _silent
        say("read")
        recording = read_recording(app, [inputs] if isinstance(inputs, str | Path) else list(inputs), format)
        known = labels_in(recording, Path(labels)) if labels is not None else {}
        if limit is not None:
            recording.sample(limit)
        make_ready(folder)
        with app:
            own = app.call(empty(app, folder)) if fresh else WORKSPACE
            evaluator = Evaluator(
                app,
                recording,
                workspace=workspace or own,
                ignore_success=ignore_success,
                reports=reports,
                say=say,
                listener=listener or _silent,
            )
            evaluation = app.call(evaluator.run()).model_copy(update={"labels": known})
            if fresh:
                app.call(note_as_own(app, own))
        say("write the report")
        write_report(evaluation, folder)
    return evaluation


def _silent(_: object) -> None:
    pass
