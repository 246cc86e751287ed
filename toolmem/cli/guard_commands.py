"""`toolmem guard`: what the guard would have said to recorded calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from toolmem.cli.console import (
    AsJson,
    Config,
    Overrides,
    ProgressLine,
    counted,
    logs_to_stderr,
    print_json,
    print_table,
    say,
    tell,
)
from toolmem.errors import RequestError
from toolmem.flow.report import Event

T = TypeVar("T")

if TYPE_CHECKING:
    from toolmem.guard.replaying import Flag, ReplayResult
    from toolmem.light_models import ToolSchema
    from toolmem.models import ToolCallResult

_MOST_SHOWN = 20  # flagged calls
_NAMES = {
    "rule": "rules: what the user forbade or wants to be asked",
    "repeat": "repeats: the same call failed, and nothing changed since",
    "known_name": "names: known not to exist",
}
_SETTINGS = {"rule": "rules", "repeat": "repeats", "known_name": "names", "schema": "schema"}
_MEANINGS = (
    "flagged: calls that the source speaks against, whatever its mode; wrong: of these, the calls that worked.",
    "recall: the flagged among all calls that failed; precision: the failed among the flagged; [95 % interval].",
)


def replay(
    overrides: Overrides = None,
    recording: Annotated[
        Path | None, typer.Option("--input", help="A recording. Default: the workspace's log of calls.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help='As `rules export` writes it, or JSON Lines: {"rule": SENTENCE, ...}.'),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="A JSON list of the tools' schemas, in OpenAI or MCP form.")
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", help="Whose log of calls. Default: `default`, or the project's own sample."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Replay recorded calls: which ones the guard would have flagged, and which of these worked.

    Each call is treated as it ran: nothing is stopped or stored. The guard begins with an empty memory: of a
    conversation it knows the calls before this one, of other conversations those that had ended. Calls of a store are
    held against its active rules where --rules names none; where nothing was logged, the project's sample is replayed.

    toolmem guard replay

    toolmem guard replay --workspace team --rules new_rules.jsonl

    toolmem guard replay --input calls.jsonl

    toolmem guard replay --input calls.jsonl --rules rules.jsonl --tools tools.json

    toolmem guard replay --input calls.jsonl --json guidance.context_key=metadata.database
    """
    from toolmem.app import ToolMemApp
    from toolmem.cli.logged_calls import logged_past
    from toolmem.formats.files import read_file
    from toolmem.guard.replaying import replay as replayed
    from toolmem.readers.plain_text import name_shown
    from toolmem.rules.rule_file import read_rules
    from toolmem.sample import sample_path

    if recording is not None and workspace is not None:
        raise RequestError("--workspace names the log to replay where there is no --input: give one", field="input")
    with logs_to_stderr():
        settings = ToolMemApp(config, overrides or ()).settings
        past = logged_past(workspace, config, overrides) if recording is None else None
        if past is None:
            imported = read_file(recording or sample_path(), time_zone=settings.time_zone)
    calls = past.calls if past else sorted(imported.calls, key=lambda each: (each[1].create_time, each[0]))
    schemas = _schemas(tools, [call for _, call in calls])
    bound, reminders = (past.rules if past else {}), list[tuple[str, str]]()
    if rules is not None:
        bound, reminders = read_rules(_entries(rules), schemas)
    source = f"The recording {name_shown(str(recording))}" if recording else "The project's own sample"
    source = f"The log of workspace {name_shown(workspace or 'default')}" if past else source
    with ProgressLine() as progress:
        result = replayed(
            _counted_off(calls, progress),
            bound,
            context_key=settings.guidance.context_key,
            parameters={schema.name: schema.parameters for schema in schemas},
        )
    if as_json:
        print_json({"modes": settings.guard.modes, **result.as_json()})
        return
    _print(result, dict(calls), _ReplayBasis.of(source, settings, rules=bool(bound or rules)))
    for text, reason in reminders:
        say(f"only a reminder: {text}: {reason}")


def _counted_off(calls: Sequence[tuple[int, T]], progress: ProgressLine) -> Iterator[tuple[int, T]]:
    """The calls, while the line says how many of them are done."""
    progress(Event("op_started", "", "replay"))
    for done, call in enumerate(calls):
        if done % 100 == 0:
            progress(Event("progress", "", "replay", done=done, total=len(calls), message="calls"))
        yield call


def _entries(path: Path) -> list[tuple[str, Any]]:
    if path.suffix in (".yaml", ".yml"):
        return _of_team(path)
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


def _of_team(path: Path) -> list[tuple[str, Any]]:
    from toolmem.rules.team_file import team_file_at

    team = team_file_at(path)
    if team.problems:
        raise RequestError(f"--rules: {team.problems[0]}", field="rules")
    return [(str(path), rule.as_entry()) for rule in team.rules.values()]


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


def _print(result: ReplayResult, calls: dict[int, ToolCallResult], told: _ReplayBasis) -> None:
    conversations = {call.conversation_id for call in calls.values() if call.conversation_id}
    tell(
        f"{told.source}: {counted(result.calls, 'call')} in {counted(len(conversations), 'conversation')}, "
        f"{result.failures:,} of which failed. Each was replayed as it ran: nothing was stopped and nothing stored."
    )
    tell(f"Modes: {', '.join(f'{source} {mode}' for source, mode in told.modes.items())}.")
    rows = [_row(kind, result) for kind in told.asked]
    heads = ("source", "flagged", "wrong", "recall", "precision")
    print_table("", heads, rows, numeric=frozenset(heads[1:]), notes=[*_MEANINGS, *told.not_asked])
    for flag in result.flags[:_MOST_SHOWN]:
        tell(f"\n{_headline(flag, calls[flag.index], told)}\n    {flag.source.text}")
    if len(result.flags) > _MOST_SHOWN:
        tell(f"\n… and {counted(len(result.flags) - _MOST_SHOWN, 'flag')} more; --json lists all of them")
    if not result.flags:
        tell("\nNo call was flagged.")


def _row(kind: str, result: ReplayResult) -> tuple[str, ...]:
    of = result.of(kind)
    shares = ("recall", "precision") if kind != "rule" else ()  # a rule speaks of what may be done, not of what fails
    told = [_share(of[name], of[f"{name}_interval"]) for name in shares] or ["–", "–"]
    return (_NAMES[kind], f"{of['flagged']:,}", f"{of['wrong']:,}", *told)


class _ReplayBasis(NamedTuple):
    """What a report says beside its figures."""

    source: str  # of the calls
    modes: dict[str, str]
    asked: tuple[str, ...]  # kinds of sources
    not_asked: tuple[str, ...]  # why

    @classmethod
    def of(cls, source: str, settings: Any, *, rules: bool) -> _ReplayBasis:
        """Of a replay: there were `rules`."""
        names = bool(settings.guidance.context_key)
        asked = ("rule",) * rules + ("repeat",) + ("known_name",) * names
        missing = {
            "rule": "Rules were not asked: --rules FILE names them.",
            "known_name": "Known names were not asked: guidance.context_key=FIELD says what a call ran against.",
        }
        return cls(
            source,
            settings.guard.modes,
            asked,
            tuple(why for kind, why in missing.items() if kind not in asked),
        )


def _headline(flag: Flag, call: ToolCallResult, told: _ReplayBasis) -> str:
    from toolmem.readers.plain_text import name_shown, plain

    ended = {True: "failed again", False: "worked", None: "ended unknown"}[flag.failed]
    given = plain(json.dumps(call.input, ensure_ascii=False), 100)
    setting = _SETTINGS[flag.source.kind]
    mode = told.modes[setting]
    action = flag.source.action + ("" if mode in ("enforce", flag.source.action) else f" ({mode}, as configured)")
    return (
        f"call {flag.index + 1}, {setting}: {name_shown(call.tool_name)} {given}\n    {action}; as recorded, it {ended}"
    )


def _share(value: float | None, interval: list[float] | None) -> str:
    if value is None or interval is None:
        return "–"
    return f"{value:.1%} [{interval[0]:.1%}, {interval[1]:.1%}]"
