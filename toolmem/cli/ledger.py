"""`toolmem ledger`: what models were asked, and what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import AsJson, Config, Overrides, counted, logs_to_stderr, print_json, print_table, say
from toolmem.config.extras import need
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.flow.report import RunReport
    from toolmem.protocols import LedgerEntry
    from toolmem.providers.usage_log import LedgerSum
    from toolmem.research.report.run_savings import Saved
    from toolmem.stored import StoredMemory

DEFAULT_BY = ("op", "model")
BILL_BY = ("kind", "tool", "policy")
_FIGURES = ("requests", "failed", "prompt tokens", "cached", "completion", "cost", "seconds", "waited")


def add_to(app: typer.Typer) -> None:
    app.command("ledger", short_help="What models were asked, and what it cost.")(ledger)


def ledger(
    overrides: Overrides = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Group by workspace, flow, op, tool, backend, model, day or outcome; may be given several times. "
            "Default: op and model. With --savings: kind, tool, policy, reason, run, day, model, op, flow or "
            "workspace; default: kind, tool and policy.",
        ),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="A day or a time (ISO 8601), included.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="A day, included, or a time (ISO 8601), not included.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the sums to this file.")] = None,
    reports: Annotated[
        Path | None,
        typer.Option(
            "--reports", help="Folder of run reports (`run` and `evaluate --reports`): shows what skips saved."
        ),
    ] = None,
    savings: Annotated[
        bool,
        typer.Option(
            "--savings",
            help="The bill: judging and summarizing, spent and avoided; the single-pass bound; freshness.",
        ),
    ] = False,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="With --savings: draw the bill and the freshness into this folder.")
    ] = None,
    workspace: Annotated[str, typer.Option("--workspace", help="Whose requests.")] = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Sum up every request that was made to a model, retries and embeddings included. An empty ledger is no error.

    toolmem ledger

    toolmem ledger --by day --by model --since 2026-03-01 --csv ledger.csv

    toolmem ledger --by op --reports reports vector_store.default.params.path=report/memory.db

    toolmem evaluate --reports runs llm.default.backend=dry_run

    toolmem ledger --savings --reports runs vector_store.default.params.path=report/memory.db

    toolmem ledger --savings --reports runs --by policy --by reason --csv bill.csv --plots figures
    """
    from toolmem.app import ToolMemApp
    from toolmem.providers.usage_log import sum_up

    if plots is not None and not savings:
        raise RequestError("--plots: only the bill has figures; add --savings", field="plots")
    if plots is not None:
        need("--plots", "research")
    columns = list(dict.fromkeys(by or (BILL_BY if savings else DEFAULT_BY)))
    with logs_to_stderr():
        app = ToolMemApp(config, overrides or ())
        zone = app.settings.zone
        start, end = _moment("since", since, app), _moment("until", until, app)
        _refuse_unknown(columns, savings)  # before anything is opened
        runs = None if reports is None else _read_reports(reports, workspace, start, end)
        entries, others, place, memories = asyncio.run(
            _read(app, workspace, start, end, calls_of=_named(runs or []) if savings else None)
        )
    if savings:
        from toolmem.cli.ledger_savings import show_savings

        narrowed = start is not None or end is not None
        options: dict[str, Any] = {"as_json": as_json, "csv": csv, "plots": plots, "narrowed": narrowed}
        elsewhere = "" if entries or runs else _elsewhere(workspace, others, place, reports)
        show_savings(app, workspace, columns, entries, runs, memories, elsewhere=elsewhere, **options)
        return
    from toolmem.research.report.run_savings import sum_savings

    sums = sum_up(entries, columns, zone=zone)
    saved = None if runs is None else sum_savings(runs, columns, zone=zone)
    if csv is not None:
        _write_csv(csv, columns, sums)
        say(f"{counted(len(sums), 'row')} in {csv}")
    if as_json:
        found: dict[str, Any] = {
            "workspace": workspace,
            "by": columns,
            "sums": [each.row() for each in sums],
            "total": [each.row() for each in sum_up(entries, [])],
        }
        print_json(found if saved is None else {**found, "saved": [each.row() for each in saved]})
        return
    if sums:
        _print_sums(columns, sums, entries)
    else:
        say(_nothing(workspace, others, place, since or until))
    if runs:
        _print_saved(saved or [])
    elif reports is not None:
        say(f"no run report of workspace {workspace!r}{_elsewhere(workspace, [], '', reports)}")


def _refuse_unknown(columns: Sequence[str], savings: bool) -> None:
    """Raises RequestError."""
    from toolmem.providers.usage_log import sum_up
    from toolmem.research.report.bill import Bill
    from toolmem.research.report.bill_sums import sum_bill

    if savings:
        sum_bill(Bill(), columns)
    else:
        sum_up([], columns)


def _read_reports(folder: Path, workspace: str, since: datetime | None, until: datetime | None) -> list[RunReport]:
    """The workspace's run reports of that time; files that are none are named. Raises RequestError."""
    from toolmem.research.report.run_savings import read_reports

    runs, problems = read_reports(folder, workspace=workspace, since=since, until=until)
    for problem in problems:
        say(f"left out: {problem}")
    return runs


def _named(runs: Sequence[RunReport]) -> set[str]:
    """Tools that the run reports speak of."""
    from toolmem.research.report.bill import told

    rows = {row["tool_name"] for report in runs for _, row in told(report)}
    return rows | {entry.tool for report in runs for entry in report.entries if entry.tool}


async def _read(
    app: ToolMemApp, workspace: str, since: datetime | None, until: datetime | None, *, calls_of: set[str] | None
) -> tuple[list[LedgerEntry], list[str], str, list[StoredMemory]]:
    """(requests, workspaces with a ledger, where the store is, kept calls of `calls_of` and of the requests' tools)"""
    from toolmem.providers.usage_log import NAMESPACE, read_ledger

    async with app:
        store = await app.services.store_named()
        entries = await read_ledger(store, workspace, since=since, until=until)
        others = [] if entries else [w for w in await store.workspaces() if NAMESPACE in await store.namespaces(w)]
        memories: list[StoredMemory] = []
        if calls_of is not None:
            names = sorted(calls_of | {entry.tool for entry in entries} - {""})
            memories = await store.memories(workspace, names, calls=True)
        return entries, others, str((await store.info())["location"]), memories


def _moment(option: str, given: str | None, app: ToolMemApp) -> datetime | None:
    """Aware; what has no zone is read in the configured one. `until` of a day is the beginning of the next."""
    if not given:
        return None
    try:
        read = datetime.fromisoformat(given)
        if option == "until" and _is_day(given):
            read += timedelta(days=1)
    except (ValueError, OverflowError):
        raise RequestError(
            f"--{option}: expected a day or a time like 2026-03-01 or 2026-03-01T12:00, got {given!r}", field=option
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=app.settings.zone)


def _is_day(given: str) -> bool:
    try:
        date.fromisoformat(given)
    except ValueError:
        return False
    return True


def _print_sums(columns: Sequence[str], sums: Sequence[LedgerSum], entries: Sequence[LedgerEntry]) -> None:
    from toolmem.providers.usage_log import sum_up

    total = [each for each in sum_up(entries, []) if len(sums) > 1]
    rows = [[*(each.group[name] for name in columns), *_figures(each)] for each in sums]
    rows += [["total", *[""] * (len(columns) - 1), *_figures(each)] for each in total]
    notes = []
    estimated = sum(each.estimated for each in sums)
    if estimated:
        from toolmem.config.extras import missing

        by = "that were estimated" if missing("dashscope") else "of the tokenizer"
        notes.append(f"{counted(estimated, 'request')} with token counts {by}: no reply stated them.")
    if any(each.cost is None for each in sums):
        notes.append("A dash in place of a cost: no price is configured (prices.<model>.input and .output).")
    failed = {outcome: n for each in sums for outcome, n in each.outcomes.items() if outcome != "ok"}
    if failed:
        counts: dict[str, int] = dict.fromkeys(failed, 0)
        for each in sums:
            for outcome in counts:
                counts[outcome] += each.outcomes.get(outcome, 0)
        told = ", ".join(f"{n:,} {outcome.removeprefix('error: ')}" for outcome, n in sorted(counts.items()))
        notes.append(f"Failed attempts: {told}. A reply that was lost may have been billed.")
    print_table("Requests to models", [*columns, *_FIGURES], rows, numeric=frozenset(_FIGURES), notes=notes)


def _figures(each: LedgerSum) -> list[str]:
    counts = (each.requests, each.failed, each.prompt_tokens, each.cached_tokens, each.completion_tokens)
    cost = "–" if each.cost is None else f"{each.cost:,.6f} {each.currency}"
    return [*(f"{count:,}" for count in counts), cost, f"{each.seconds:,.1f}", f"{each.waited:,.1f}"]


def _print_saved(saved: Sequence[Saved]) -> None:
    if not saved:
        say("no run among these reports skipped anything that a model had been asked before")
        return
    columns = list(saved[0].group)
    figures = ("runs", "requests avoided", "prompt tokens avoided")
    rows = [[*each.group.values(), f"{each.runs:,}", f"{each.requests:,}", f"{each.prompt_tokens:,}"] for each in saved]
    print_table("What skips saved", [*columns, *figures], rows, numeric=frozenset(figures))


def _nothing(workspace: str, others: Sequence[str], place: str, narrowed: object) -> str:
    message = f"no model was asked on behalf of workspace {workspace!r}"
    if workspace in others and narrowed:
        return f"{message} in this time ({place})"
    elsewhere = f"; there are requests in {', '.join(map(repr, others))}" if others else ""
    return f"{message} ({place}){elsewhere}"


def _elsewhere(workspace: str, ledgers: Sequence[str], place: str, reports: Path | None) -> str:
    """Other workspaces of which something is known, and how they are chosen; "" where there are none."""
    from toolmem.research.report.run_savings import reported_workspaces

    reported = [] if reports is None else reported_workspaces(reports)
    named = {f"requests ({place})": ledgers, f"run reports ({reports})": reported}
    known = {what: [each for each in names if each != workspace] for what, names in named.items()}
    told = [f"there are {what} of {', '.join(map(repr, names))}" for what, names in known.items() if names]
    chosen = next((names[0] for names in known.values() if names), "")
    return f"; {'; '.join(told)}: choose by --workspace {chosen}" if told else ""


def _write_csv(path: Path, columns: Sequence[str], sums: Sequence[LedgerSum]) -> None:
    from toolmem.research.report.tables import write_rows

    names = list(sums[0].row()) if sums else list(columns)
    write_rows(names, [list(each.row().values()) for each in sums], path)
