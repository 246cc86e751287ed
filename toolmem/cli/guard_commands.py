"""`toolmem guard`: what the guard would have said to recorded calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import (
    AsJson,
    Config,
    Overrides,
    counted,
    logs_to_stderr,
    print_json,
    print_table,
    say,
    tell,
)
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.guard.replaying import Flag, ReplayResult
    from toolmem.light_models import ToolSchema
    from toolmem.models import ToolCallResult

_MOST_SHOWN = 20  # flagged calls
_NAMES = {"rule": "rules", "repeat": "repeats of failures", "known_name": "names known not to exist"}


def replay(
    overrides: Overrides = None,
    recording: Annotated[
        Path | None, typer.Option("--input", help="A recording. Default: the project's own sample.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help='JSON Lines of rules: {"rule": SENTENCE}, with tool_name and when where wanted.'),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="A JSON list of the tools' schemas, in OpenAI or MCP form.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Replay recorded calls: which ones the guard would have flagged, and which of these worked.

    Each call is treated as it ran. It starts with an empty memory: a conversation knows its own calls before this one,
    and other conversations as far as they had ended. Nothing is stored.

    toolmem guard replay --input calls.jsonl

    toolmem guard replay --input calls.jsonl --rules rules.jsonl --tools tools.json

    toolmem guard replay --input calls.jsonl --json guidance.context_key=metadata.database
    """
    from toolmem.app import ToolMemApp
    from toolmem.formats.files import read_file
    from toolmem.guard.replaying import replay as replayed
    from toolmem.guard.rule_file import read_rules
    from toolmem.sample import sample_path

    with logs_to_stderr():
        settings = ToolMemApp(config, overrides or ()).settings
        imported = read_file(recording or sample_path(), time_zone=settings.time_zone)
    calls = sorted(imported.calls, key=lambda each: (each[1].create_time, each[0]))
    schemas = _schemas(tools, [call for _, call in calls])
    bound, reminders = read_rules(_entries(rules), schemas) if rules else ({}, [])
    result = replayed(
        calls,
        bound,
        context_key=settings.guidance.context_key,
        parameters={schema.name: schema.parameters for schema in schemas},
    )
    if as_json:
        print_json(result.as_json())
        return
    _print(result, dict(calls), bool(settings.guidance.context_key))
    for text, reason in reminders:
        say(f"only a reminder: {text}: {reason}")


def _entries(path: Path) -> list[tuple[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"--rules: {path} cannot be read: {error}", field="rules") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append((f"{path}, line {number}", json.loads(line)))
            except ValueError:
                raise RequestError(f"--rules: {path}, line {number} is not JSON", field="rules") from None
    return found


def _schemas(path: Path | None, calls: list[ToolCallResult]) -> list[ToolSchema]:
    """The declared tools; without a file, the names that were called."""
    from toolmem.light_models import ToolSchema

    if path is None:
        return [ToolSchema(name=name) for name in sorted({call.tool_name for call in calls})]
    try:
        declared = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"--tools: {path} cannot be read: {error}", field="tools") from None
    if not isinstance(declared, list):
        raise RequestError(f"--tools: {path}: expected a list of schemas", field="tools")
    return [ToolSchema.read(each) for each in declared]


def _print(result: ReplayResult, calls: dict[int, ToolCallResult], names: bool) -> None:
    rows = []
    for kind, title in _NAMES.items():
        of = result.of(kind)
        if kind == "known_name" and not names:
            continue
        of_failures = kind != "rule"  # a rule speaks of what may be done, not of what fails
        recall = _share(of["recall"], of["recall_interval"]) if of_failures else "–"
        precision = _share(of["precision"], of["precision_interval"]) if of_failures else "–"
        rows.append((title, f"{of['flagged']:,}", f"{of['wrong']:,}", recall, precision))
    heads = ("source", "flagged", "of these worked", "share of all failures", "failed of the flagged")
    title = f"{counted(result.calls, 'call')}, {counted(result.failures, 'failure')}"
    print_table(title, heads, rows, numeric=frozenset(heads[1:]))
    for flag in result.flags[:_MOST_SHOWN]:
        tell(f"\n{_headline(flag, calls[flag.index])}\n    {flag.source.text}")
    if len(result.flags) > _MOST_SHOWN:
        tell(f"\n… and {counted(len(result.flags) - _MOST_SHOWN, 'flag')} more; --json lists all of them")


def _headline(flag: Flag, call: ToolCallResult) -> str:
    from toolmem.readers.plain_text import plain

    ended = {True: "failed again", False: "worked", None: "ended unknown"}[flag.failed]
    given = plain(json.dumps(call.input, ensure_ascii=False), 100)
    return f"call {flag.index + 1}, {flag.source.action}: {call.tool_name} {given} — as recorded, it {ended}"


def _share(value: float | None, interval: list[float] | None) -> str:
    if value is None or interval is None:
        return "–"
    return f"{value:.1%} [{interval[0]:.1%}, {interval[1]:.1%}]"
