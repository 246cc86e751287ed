"""Several judges on the same calls: how far they agree, and what each of them costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from toolmem.app import ToolMemApp
from toolmem.config.nearest_names import hint
from toolmem.config.overrides import read_overrides
from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op
from toolmem.flow.report import Event
from toolmem.formats.imported import Format
from toolmem.formats.labels import Label, LabelColumn, RecordedFlag, check_label
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult
from toolmem.ops import ParseToolCallResultOp
from toolmem.ops.arguments import read_schemas
from toolmem.ops.judging import Judged, judge_calls, tell_stop
from toolmem.readers.plain_text import counted
from toolmem.research.recordings import Recording, read_recording
from toolmem.research.report.agreement import Comparison, JudgeRun

OFFLINE, RECORDED, COLUMN = "offline", "recorded", "column:"
KIND_OF = "op.parse_tool_call_result_op"  # the configuration of what judges calls: prompts, language, pacing

_OFFLINE_READING = "that it failed, or answered nothing to a question; usefulness was not judged"
_MODEL_READING = "that the model found it failed, useless, or its parameters wrong"


class JudgeOnlyOp(Op):
    """Judges calls as the configuration's parse_tool_call_result_op does, whose place it takes; keeps no call."""

    Params = ParseToolCallResultOp.Params
    name = ParseToolCallResultOp.name
    reads = ("workspace_id", "tool_call_results")
    optional = ("tools",)
    leaves = ("judged",)
    asks_model = True
    params: ParseToolCallResultOp.Params

    async def execute(self, context: Context) -> None:
        calls = list(context["tool_call_results"])
        judged = await judge_calls(context, calls, read_schemas(context.get("tools")), force=self.params.force)
        context["judged"] = judged
        context.response.success = not judged.failures
        tell_stop(context.response.metadata, judged.stopped)


class Comparing:
    """One comparison on one app. Models are asked one after the other, within one budget."""

    def __init__(
        self,
        app: ToolMemApp,
        recording: Recording,
        judges: Sequence[str],
        *,
        workspace: str,
        ignore_success: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._app = app
        self._names = list(judges)
        self._workspace = workspace
        self._say = say
        self._schemas = recording.tools
        self._rows = tuple(row for row, _ in recording.calls)
        self._recorded = tuple(call for _, call in recording.calls)
        hidden: dict[str, Any] = {"success": None} if ignore_success else {}
        # Without ids: a call that the store keeps already is judged as well.
        self._shown = [call.model_copy(update={"id": None, **hidden}) for call in self._recorded]
        self._notes = list(recording.notes)
        if RECORDED in judges and not ignore_success:
            self._notes.append(
                "The other judges were shown the recorded flag, and the rule-based check believes a flag that says "
                "failed: --ignore-success withholds it."
            )
        self._stopped_by = ""

    async def run(self) -> Comparison:
        with self._app.services.one_budget():
            runs = [await self._run(name) for name in self._names]
        return Comparison(self._rows, self._recorded, tuple(runs), tuple(self._notes), self._stopped_by)

    async def _run(self, name: str) -> JudgeRun:
        label = _label(name)
        if label is not None:
            return _label_run(name, label, self._recorded)
        self._say(f"judge: {name}")
        if name == OFFLINE:
            return self._rule_based(name)
        return await self._by_model(name)

    def _rule_based(self, name: str) -> JudgeRun:
        check = RuleBasedCheck()
        begun = time.perf_counter()
        verdicts = [check.check(call, self._schemas.get(call.tool_name)) for call in self._shown]
        return JudgeRun(
            name,
            str(check.identity),
            _OFFLINE_READING,
            label=False,
            scores=tuple(verdict.score for verdict in verdicts),
            evaluations=tuple(verdict.evaluation for verdict in verdicts),
            asked=len(verdicts),
            seconds=time.perf_counter() - begun,
        )

    async def _by_model(self, name: str) -> JudgeRun:
        app = self._app
        begun = time.perf_counter()
        run = await app.run_detailed(
            judge_only(app, name),
            workspace_id=self._workspace,
            tool_call_results=self._shown,
            tools=list(self._schemas.values()),
        )
        judged: Judged = run.context["judged"]
        metadata = run.response.metadata
        self._stopped_by = self._stopped_by or metadata.get("stopped_by", "")
        backend = app.settings.llm[name].backend
        return JudgeRun(
            name,
            str((await app.services.judge(run.context.op)).identity),
            _MODEL_READING if backend not in (OFFLINE, "dry_run") else _OFFLINE_READING,
            label=False,
            scores=tuple(call.score for call in judged.calls),
            evaluations=tuple(call.evaluation for call in judged.calls),
            usage=run.report.usage,
            asked=judged.evaluated,
            reused=judged.reused,
            seconds=time.perf_counter() - begun,
            stopped=metadata.get("stopped", ""),
            prompts_only=backend == "dry_run",
        )


def judge_only(app: ToolMemApp, llm: str) -> JudgeOnlyOp:
    """The op that asks this model, configured like the one of `add_tool_call_result`. Raises RequestError."""
    bound = app.configured.bind(JudgeOnlyOp(llm=llm, judge=""))
    assert isinstance(bound, JudgeOnlyOp)
    if bound.settings.llm != llm or bound.settings.judge:
        decided = f"judge={bound.settings.judge}" if bound.settings.judge else f"llm={bound.settings.llm}"
        raise RequestError(
            f"{KIND_OF}.{decided}: this override would decide for every judge; leave it out, --judge names the models",
            field="judge",
        )
    return bound


def _label(name: str) -> Label | None:
    if name == RECORDED:
        return RecordedFlag()
    return LabelColumn.read(name.removeprefix(COLUMN)) if name.startswith(COLUMN) else None


def _label_run(name: str, label: Label, calls: Sequence[ToolCallResult]) -> JudgeRun:
    return JudgeRun(
        name,
        "",
        label.reading,
        label=True,
        scores=tuple(label.score(call) for call in calls),
        evaluations=tuple(label.words(call) for call in calls),
    )


async def check_judges(app: ToolMemApp, names: Sequence[str]) -> None:
    """Raises RequestError or ConfigError where these cannot be compared: before anything is read, judged or paid."""
    if len(names) < 2:
        raise RequestError("judge: a comparison needs two judges, e.g. --judge offline --judge default", field="judge")
    seen: dict[str, str] = {}
    for name in names:
        if _label(name) is not None:
            identity = name
        elif name == OFFLINE:
            identity = str(RuleBasedCheck().identity)
        elif name in app.settings.llm:
            op = judge_only(app, name)
            app.services.check_model(op)
            identity = str((await app.services.judge(op)).identity)
        else:
            there = [OFFLINE, RECORDED, "column:NAME", *app.settings.llm]
            raise RequestError(
                f"judge: there is no judge {name!r} ({hint(name, there)}); there are {', '.join(there)}", field="judge"
            )
        if identity in seen:
            raise RequestError(f"judge: {seen[identity]!r} and {name!r} are the same judge, {identity}", field="judge")
        seen[identity] = name


def keep_labelled(recording: Recording, names: Sequence[str]) -> None:
    """Leave out the calls that lack one of the labels asked for: nothing is paid for them. Raises RequestError."""
    for name in names:
        label = _label(name)
        if label is None:
            continue
        check_label(name, label, (call for _, call in recording.calls))
        kept = [(row, call) for row, call in recording.calls if label.score(call) is not None]
        if len(kept) < len(recording.calls):
            recording.notes.append(f"left out: {counted(len(recording.calls) - len(kept), 'call')} without {name}")
            recording.calls = kept
    if not recording.calls:
        raise RequestError("judge: no call has all the labels asked for", field="judge")


def _flows_that_ask(judges: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Overrides with a flow for each judge whose model overrides describe: what no flow names is refused as unused."""
    described = {
        override.path[1] for override in read_overrides(overrides)[0] if override.path[0] == "llm" and override.path[1:]
    }
    return [
        f"flow.asks_judge_{position}.flow_content=rejudge_op(llm={name!r})"
        for position, name in enumerate(judges)
        if name in described
    ]


def compare_judges(
    inputs: str | Path | Sequence[str | Path] = (),
    judges: Sequence[str] = (OFFLINE, "default"),
    *,
    format: Format | None = None,
    limit: int | None = None,
    ignore_success: bool = False,
    workspace: str = "default",
    config: str | Path | Sequence[str | Path] | None = None,
    overrides: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    listener: Callable[[Event], None] | None = None,
) -> Comparison:
    """Let several judges judge the same recorded calls. Also for notebooks.

    `inputs`: recorded calls or conversations (none: the project's own sample). `judges`: "offline" (the rule-based
    check), names of the configuration's `llm` section, "recorded" (the success flag), "column:NAME" (a field of the
    calls' metadata; see `toolmem.formats.labels`). `limit`: a seeded random sample of the calls that have all labels.
    `ignore_success` withholds the recorded flag from the judges. Verdicts are kept in the workspace's cache, so that
    the same comparison again costs nothing, and requests in its ledger; no call is kept.

    Raises Refused before anything is judged where the input or the configuration is wrong.
    """
    app = ToolMemApp(config, [*overrides, *_flows_that_ask(judges, overrides)])
    if listener is not None:
        app.listeners.append(listener)
    with app:
        app.call(check_judges(app, judges))
        say("read")
        recording = read_recording(app, [inputs] if isinstance(inputs, str | Path) else list(inputs), format)
        keep_labelled(recording, judges)
        if limit is not None:
            recording.sample(limit)
        work = Comparing(app, recording, judges, workspace=workspace, ignore_success=ignore_success, say=say)
        return app.call(work.run())
