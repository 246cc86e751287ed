"""`toolmem evaluate`: the main job."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import Config, Overrides, ProgressLine, logs_to_stderr, print_json, print_table, say
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.report.evaluation import Evaluation


def add_to(app: typer.Typer) -> None:
    app.command("evaluate", short_help="Judge, summarize and report a recording of tool calls.")(evaluate)


def evaluate(
    overrides: Overrides = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", help="A recording; may be given several times. Default: the project's own sample."),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="calls or openai; recognized by content where not given.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("report"),
    ignore_success: Annotated[
        bool, typer.Option("--ignore-success", help="Withhold the recorded success flag from the judge.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Judge a seeded random sample of so many calls.")
    ] = None,
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="Default: evaluate, in a fresh store DIR/memory.db.")
    ] = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json instead of tables.")] = False,
) -> None:
    """Judge a recording of tool calls, distil guidance, and write one page with tables and figures.

    toolmem evaluate

    toolmem evaluate --input calls.jsonl.gz --out report --ignore-success

    toolmem evaluate --input chats.jsonl --format openai llm.default.backend=dry_run
    """
    if format not in (None, "calls", "openai"):
        raise RequestError(f"--format: expected calls or openai, got {format!r}", field="format")
    if out.exists() and not out.is_dir():
        raise RequestError(f"--out: {out} is not a folder", field="out")
    with logs_to_stderr(), ProgressLine() as progress:
        evaluation = asyncio.run(
            _evaluate(inputs or [], format, out, ignore_success, limit, workspace, config, overrides or [], progress)
        )
        progress.phase("write the report")
        page = _write(evaluation, out)
    if as_json:
        import json

        print_json(json.loads((out / "summary.json").read_text(encoding="utf-8")))
    else:
        from toolmem.report import skip_table, summary_table

        for table in (summary_table(evaluation), skip_table(evaluation)):
            print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)
        print(f"\nReport: {page}")
    if evaluation.failures:
        say(f"{len(evaluation.failures)} records failed; summary.json in {out} names them")
        raise typer.Exit(1)


async def _evaluate(
    inputs: list[Path],
    format: Any,
    out: Path,
    ignore_success: bool,
    limit: int | None,
    workspace: str | None,
    config: list[Path] | None,
    overrides: list[str],
    progress: ProgressLine,
) -> Evaluation:
    from toolmem.app import ToolMemApp
    from toolmem.config.loading import DEFAULT
    from toolmem.evaluation import WORKSPACE, Evaluator, read_recording

    app = ToolMemApp(config, overrides, count_prompts=True)
    fresh = workspace is None and app.configured.loaded.origins.all_of(("vector_store", "default")) <= {DEFAULT}
    if fresh:
        overrides = [*overrides, f"vector_store.default.params.path={_quoted(out / 'memory.db')}"]
        app = ToolMemApp(config, overrides, count_prompts=True)
    app.listeners.append(progress)
    progress.phase("read")
    recording = read_recording(app, inputs, format)
    if limit is not None:
        recording.sample(limit)
    for note in recording.notes:
        say(note)
    if fresh:
        _make_room(out)
    async with app:
        evaluator = Evaluator(
            app, recording, workspace=workspace or WORKSPACE, ignore_success=ignore_success, say=progress.phase
        )
        return await evaluator.run()


def _quoted(path: Path) -> str:
    """A path as an override's value: always a string, whatever it looks like."""
    return "'" + str(path).replace("'", "''") + "'"


def _make_room(out: Path) -> None:
    """Remove the store that an earlier evaluation left in this folder."""
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal", "-shm"):
        (out / f"memory.db{suffix}").unlink(missing_ok=True)


def _write(evaluation: Evaluation, out: Path) -> Path:
    import tempfile

    from toolmem.report import render_page, write_tables

    write_tables(evaluation, out)
    with tempfile.TemporaryDirectory(prefix="toolmem-") as data:
        evaluation.save(data)
        page = out / "report.html"
        render_page(data, page)
    return page
