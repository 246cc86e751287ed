"""`toolmem ledger`: what models were asked, and what it cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
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
    from toolmem.providers.usage_log import Spent
    from toolmem.research.report.charges import Kind
    from toolmem.research.report.single_pass import LineTokens
    from toolmem.stored import StoredMemory

DEFAULT_BY = ("op", "model")
SAVINGS_BY = ("kind", "tool")
_FIGURES = ("requests", "failed", "prompt tokens", "cached", "completion", "cost", "seconds", "waited")


def add_to(app: typer.Typer) -> None:
    """Add the command `ledger`."""
    app.command("ledger", short_help="What models were asked, and what it cost.")(ledger)


def ledger(
    overrides: Overrides = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Group by workspace, flow, op, tool, backend, model, day or outcome; may be given several times. "
            "Default: op and model. With --savings: kind, tool, day, model, op, flow or workspace; default: kind "
            "and tool.",
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
            help="The cost report: judging and summarizing, spent and avoided; the single-pass bound; staleness.",
        ),
    ] = False,
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

    toolmem ledger --savings --reports runs --by kind --by day --csv costs.csv
    """
    from toolmem.cli.store_meant import app_here, tell_missing
    from toolmem.providers.usage_log import sum_up

    if savings or reports is not None:
        need("--savings" if savings else "--reports", "research")
    columns = list(dict.fromkeys(by or (SAVINGS_BY if savings else DEFAULT_BY)))
    with logs_to_stderr():
        app = app_here(config, overrides)
        tell_missing(app)
        asked = Asked(app, workspace, columns, _moment("since", since, app), _moment("until", until, app), reports)
        if savings:  # unknown columns are refused before anything is opened
            from toolmem.research.report.charges import check_columns

            check_columns(columns)
        else:
            sum_up([], columns)
        if reports is not None:
            asked.read_reports()
        asyncio.run(asked.read_store(calls=savings))
    (_show_savings if savings else _show_sums)(asked, as_json=as_json, csv=csv)


@dataclass
class Asked:
    """What the command was asked for, and what it found."""

    app: ToolMemApp
    workspace: str
    by: list[str]
    since: datetime | None
    until: datetime | None
    reports: Path | None  # folder of run reports

    entries: list[LedgerEntry] = field(default_factory=list)
    runs: list[RunReport] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)  # workspaces with run reports
    memories: list[StoredMemory] = field(default_factory=list)  # of tools that entries and runs speak of
    others: list[str] = field(default_factory=list)  # workspaces with a usage log, where this one has no entry
    place: str = ""  # of the store

    def read_reports(self) -> None:
        """The workspace's run reports of that time; files that are none are named. Raises RequestError."""
        from toolmem.research.report.run_reports import read_reports

        assert self.reports is not None
        found, problems = read_reports(self.reports, since=self.since, until=self.until)
        self.runs = [report for report in found if report.workspace == self.workspace]
        self.reported = sorted({report.workspace for report in found})
        for problem in problems:
            say(f"left out: {problem}")

    async def read_store(self, *, calls: bool) -> None:
        """The requests; with `calls` the kept calls of their tools and of those in the run reports, too."""
        from toolmem.providers.usage_log import NAMESPACE, read_ledger

        async with self.app as app:
            store = await app.services.store_named()
            self.entries = await read_ledger(store, self.workspace, since=self.since, until=self.until)
            if not self.entries:
                self.others = [w for w in await store.workspaces() if NAMESPACE in await store.namespaces(w)]
            if calls:
                self.memories = await store.memories(self.workspace, self._tools(), calls=True)
            self.place = str((await store.info())["location"])

    def _tools(self) -> list[str]:
        from toolmem.research.report.run_reports import told

        rows = {row["tool_name"] for report in self.runs for _, row in told(report)}
        entries = [*self.entries, *(entry for report in self.runs for entry in report.entries)]
        return sorted(rows | {entry.tool for entry in entries if entry.tool})

    def other_places(self) -> str:
        """Other workspaces of which something is known, and how they are chosen; "" where there are none."""
        named = {f"requests ({self.place})": self.others, f"run reports ({self.reports})": self.reported}
        known = {what: [each for each in names if each != self.workspace] for what, names in named.items()}
        told = [f"there are {what} of {', '.join(map(repr, names))}" for what, names in known.items() if names]
        chosen = next((names[0] for names in known.values() if names), "")
        return f"; {'; '.join(told)}: choose by --workspace {chosen}" if told else ""


def _show_sums(asked: Asked, *, as_json: bool, csv: Path | None) -> None:
    from toolmem.providers.usage_log import sum_up

    sums = sum_up(asked.entries, asked.by, zone=asked.app.settings.zone)
    saved = None
    if asked.reports is not None:
        from toolmem.research.report.charges import cost_report, saved_by_skips

        saved = saved_by_skips(cost_report([], asked.runs), asked.by, zone=asked.app.settings.zone)
    if csv is not None:
        from toolmem.research.report.csv_files import write_rows

        names = list(sums[0].row()) if sums else list(asked.by)
        write_rows(names, [list(each.row().values()) for each in sums], csv)
        say(f"{counted(len(sums), 'row')} in {csv}")
    if as_json:
        found: dict[str, Any] = {
            "workspace": asked.workspace,
            "by": asked.by,
            "sums": [each.row() for each in sums],
            "total": [each.row() for each in sum_up(asked.entries, [])],
        }
        print_json(found if saved is None else {**found, "saved": saved})
        return
    if sums:
        _print_sums(asked.by, sums, asked.entries)
    else:
        say(_nothing(asked))
    if asked.runs:
        _print_saved(saved or [])
    elif asked.reports is not None:
        say(f"no run report of workspace {asked.workspace!r}{asked.other_places()}")


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


def _print_sums(columns: Sequence[str], sums: Sequence[Spent], entries: Sequence[LedgerEntry]) -> None:
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
    if failed := Counter(entry.outcome for entry in entries if entry.outcome != "ok"):
        told = ", ".join(f"{n:,} {outcome.removeprefix('error: ')}" for outcome, n in sorted(failed.items()))
        notes.append(f"Failed attempts: {told}. A reply that was lost may have been billed.")
    print_table("Requests to models", [*columns, *_FIGURES], rows, numeric=frozenset(_FIGURES), notes=notes)


def _figures(each: Spent) -> list[str]:
    counts = (each.requests, each.failed, each.prompt_tokens, each.cached_tokens, each.completion_tokens)
    cost = "–" if each.cost is None else f"{each.cost:,.6f} {each.currency}"
    return [*(f"{count:,}" for count in counts), cost, f"{each.seconds:,.1f}", f"{each.waited:,.1f}"]


def _print_saved(saved: Sequence[dict[str, Any]]) -> None:
    if not saved:
        say("no run among these reports skipped anything that a model had been asked before")
        return
    figures = ("runs", "requests avoided", "prompt tokens avoided")
    columns = list(saved[0])[: -len(figures)]
    rows = [[f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in saved]
    print_table("What skips saved", [*columns, *figures], rows, numeric=frozenset(figures))


def _nothing(asked: Asked) -> str:
    message = f"no model was asked on behalf of workspace {asked.workspace!r}"
    if asked.workspace in asked.others and (asked.since or asked.until):
        return f"{message} in this time ({asked.place})"
    elsewhere = f"; there are requests in {', '.join(map(repr, asked.others))}" if asked.others else ""
    return f"{message} ({asked.place}){elsewhere}"


# ---------------------------------------------------------------- the cost report


def kinds_of(app: ToolMemApp) -> dict[str, Kind]:
    """What the configured ops do, by their keys."""
    from toolmem.ops import ParseToolCallResultOp, RejudgeOp, RetryEvaluationsOp, SummaryToolMemoryOp
    from toolmem.research.report.charges import JUDGING, KINDS, SUMMARIZING

    ops = [op for node in app.flows.values() for op in node.ops()]
    judging = (ParseToolCallResultOp, RejudgeOp, RetryEvaluationsOp)
    judge: dict[str, Kind] = {op.key: JUDGING for op in ops if isinstance(op, judging)}
    return {**KINDS, **judge, **{op.key: SUMMARIZING for op in ops if isinstance(op, SummaryToolMemoryOp)}}


def count_lines(asked: Asked) -> list[LineTokens]:
    """The lines of each tool's kept calls, as the configured summary prompt shows them."""
    from toolmem.guidance.llm_writer import writer_prompts
    from toolmem.ops import SummaryToolMemoryOp
    from toolmem.providers.tokenizer import QwenTokenizer
    from toolmem.research.report.single_pass import LineCounter

    op = asked.app.op_of("summary_tool_memory", SummaryToolMemoryOp)
    language: Any = asked.app.settings.language if op.settings.language is None else op.settings.language
    window = op.params.model_dump()["recent_call_count"]
    prompts = writer_prompts(op.settings.prompt_path)
    return LineCounter(QwenTokenizer(), window=window, prompts=prompts, language=language).of_memories(asked.memories)


def _show_savings(asked: Asked, *, as_json: bool, csv: Path | None) -> None:
    """Print the cost report. Of a part of the time there is no bound."""
    from toolmem.research.report.charges import cost_frame, cost_report, cost_table, notes
    from toolmem.research.report.single_pass import single_pass, single_pass_table
    from toolmem.research.report.staleness import staleness_frame, staleness_table, waiting

    zone = asked.app.settings.zone
    report = cost_report(asked.entries, asked.runs, prices=asked.app.services.price, kinds=kinds_of(asked.app))
    sums = cost_frame(report, asked.by, zone=zone)
    bound = single_pass(report, [] if asked.since or asked.until else count_lines(asked))
    happened = waiting(asked.runs)
    if csv is not None:
        from toolmem.research.report.csv_files import write_csv

        write_csv(sums, csv)
        say(f"{counted(len(sums), 'row')} in {csv}")
    if as_json:
        found = {
            "bill": sums,
            "total": cost_frame(report, ()),
            "single_pass": bound,
            "freshness": staleness_frame(happened),
        }
        rows = {name: f.astype(object).where(f.notna(), None).to_dict("records") for name, f in found.items()}
        print_json({"workspace": asked.workspace, "by": asked.by, **rows, "notes": notes(report)})
        return
    tables = [cost_table(report, asked.by, zone=zone)] if report.charges else []
    if not tables:
        elsewhere = "" if asked.entries or asked.runs else asked.other_places()
        say(f"nothing was asked or avoided on behalf of workspace {asked.workspace!r}{elsewhere}")
    if bound["input_tokens"].any():
        tables.append(single_pass_table(bound))
    if happened:
        tables.append(staleness_table(happened))
    for table in tables:
        print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)
    if asked.reports is None:
        say("what was avoided, and how stale guidance was, stands in run reports: --reports DIR")
