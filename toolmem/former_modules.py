"""Modules under the names that they had in 0.1: each import works throughout 0.2, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # `typing`'s, without the 10 ms that importing it takes
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any


def _below(former: str, now: str, names: str) -> dict[str, str]:
    return {f"toolmem.{former}.{name}": f"toolmem.{now}.{name}" for name in names.split()}


def _merged(former: str, now: str, names: str) -> dict[str, str]:
    return {f"toolmem.{former}.{name}": f"toolmem.{now}" for name in names.split()}


# A name of 0.1, or the beginning of one, and what it is now; the longest that fits is taken.
NAMES = {
    "toolmem.schema": "toolmem.models",
    "toolmem.ports": "toolmem.protocols",
    "toolmem.ports.stored": "toolmem.stored",
    **dict.fromkeys(
        (
            f"toolmem.ports.{name}"
            for name in ("clock", "embedding", "guidance", "judging", "metering", "models", "services", "store")
        ),
        "toolmem.protocols",
    ),
    "toolmem.importers": "toolmem.formats",
    "toolmem.importers.records": "toolmem.formats.call_records",
    "toolmem.importers.json_values": "toolmem.readers.json_values",
    "toolmem.importers.declarations": "toolmem.formats.openai_chat",
    "toolmem.importers.recognize": "toolmem.formats.files",
    "toolmem.importers.message_text": "toolmem.readers.chat",
    "toolmem.llm": "toolmem.providers",
    "toolmem.llm.prefix_cache": "toolmem.research.backtest.replay",
    "toolmem.embedding": "toolmem.providers",
    "toolmem.embedding.ngrams": "toolmem.providers.hashing",
    "toolmem.transport": "toolmem.providers",
    "toolmem.transport.endpoint": "toolmem.providers.remote_model",
    "toolmem.llm.ledger": "toolmem.providers.usage_log",
    "toolmem.transport.attempts": "toolmem.providers.request_queue",
    "toolmem.transport.failures": "toolmem.providers.model_failures",
    "toolmem.transport.dashscope_sdk": "toolmem.providers.dashscope",
    "toolmem.transport.model_service": "toolmem.providers.remote_model",
    "toolmem.transport.openai_http": "toolmem.providers.openai_compatible",
    "toolmem.service": "toolmem.server",
    "toolmem.service.rpc_methods": "toolmem.server.rpc",
    "toolmem.service.http.answers": "toolmem.server.http.responses",
    "toolmem.service.http.page": "toolmem.server.http.openapi",
    "toolmem.service.http.examples": "toolmem.server.http.openapi",
    "toolmem.service.mcp.under_way": "toolmem.server.mcp.tool_calls",
    "toolmem.service.starting": "toolmem.server",
    "toolmem.service.mcp.progress": "toolmem.server.mcp.progress_notifications",
    "toolmem.service.mcp.prompts": "toolmem.server.mcp.offered_prompts",
    "toolmem.service.mcp.tools": "toolmem.server.mcp.tool_calls",
    "toolmem.client.attempts": "toolmem.client.retrying",
    "toolmem.client.calls": "toolmem.client.requests",
    "toolmem.client.connection": "toolmem.client.clients",
    "toolmem.cli.arguments": "toolmem.cli.commands",
    "toolmem.cli.rules": "toolmem.cli.rules_commands",
    "toolmem.session.buffer": "toolmem.session.chat_messages",
    "toolmem.session.turns": "toolmem.session.chat_messages",
    "toolmem.evaluation": "toolmem.research.evaluation",
    "toolmem.comparison": "toolmem.research.comparison",
    "toolmem.recording": "toolmem.research.recordings",
    "toolmem.backtest": "toolmem.research.backtest",
    "toolmem.report": "toolmem.research.report",
    "toolmem.report.rows": "toolmem.research.report.recorded",
    "toolmem.report.frames": "toolmem.research.report.recorded",
    "toolmem.report.evaluation": "toolmem.research.report.findings",
    "toolmem.report.tables": "toolmem.research.report.csv_files",
    "toolmem.report.evidence": "toolmem.research.report.cited_calls",
    "toolmem.report.page": "toolmem.research.report.report_page",
    "toolmem.report.bill": "toolmem.research.report.charges",
    "toolmem.report.bill_sums": "toolmem.research.report.charges",
    "toolmem.report.run_savings": "toolmem.research.report.run_reports",
    "toolmem.report.freshness": "toolmem.research.report.staleness",
    "toolmem.report.blocks": "toolmem.pages.rendering",
    "toolmem.report.numbers": "toolmem.pages.numbers",
    "toolmem.report.pages": "toolmem.pages.self_contained",
    "toolmem.report.plain_page": "toolmem.research.report.report_page",
    "toolmem.report.costs": "toolmem.research.report.plots",
    "toolmem.backtest.call_lines": "toolmem.research.report.single_pass",
    "toolmem.backtest.intervals": "toolmem.research.backtest.paired",
    "toolmem.backtest.reading": "toolmem.research.backtest.naming",
    "toolmem.backtest.writing": "toolmem.research.backtest.replay",
    "toolmem.config.prompts": "toolmem.readers.prompt_templates",
    "toolmem.config.naming": "toolmem.config.document",
    "toolmem.config.names": "toolmem.config.nearest_names",
    "toolmem.config.secrets": "toolmem.config.hidden_values",
    "toolmem.ops.rule_store": "toolmem.ops.workspace_rules",
    "toolmem.config.elsewhere": "toolmem.config.reme_compat",
    "toolmem.config.unasked": "toolmem.config.cross_checks",
    "toolmem.flow.pacing": "toolmem.providers.pacing",
    "toolmem.flow.clock": "toolmem.flow.runner",
    "toolmem.flow.context": "toolmem.flow.op",
    "toolmem.flow.events": "toolmem.flow.report",
    "toolmem.guidance.conversations": "toolmem.guidance.outcomes",
    "toolmem.guidance.known_figures": "toolmem.guidance.statistics",
    "toolmem.guidance.repeats": "toolmem.guidance.outcomes",
    **_below(
        "guidance",
        "guidance.counted",
        "analysis conditions data_driven phrases repair_history repairs values",
    ),
    "toolmem.guidance.sentences": "toolmem.guidance.counted.card_lines",
    "toolmem.guidance.wording": "toolmem.guidance.counted.card_lines",
    "toolmem.guidance.error_messages": "toolmem.readers.error_messages",
    **_below("guidance", "readers", "shell sql"),
    "toolmem.judge.error_classes": "toolmem.readers.error_classes",
    "toolmem.judge.evidence": "toolmem.judge.failure_evidence",
    "toolmem.judge.reply": "toolmem.judge.verdict_reply",
    "toolmem.judge.shell": "toolmem.judge.programs",
    "toolmem.rules.agent_tools": "toolmem.operations.agent_tools",
    "toolmem.rules.shelf": "toolmem.rules.rule_ids",
    "toolmem.rules.rows": "toolmem.rules.stored_rules",
    "toolmem.rules.prompt_choice": "toolmem.rules.pinning",
    "toolmem.rules.searchable": "toolmem.rules.embedded_text",
    "toolmem.rules.failures": "toolmem.rules.capture.repeated_failures",
    "toolmem.rules.pasted": "toolmem.rules.capture.pasted",
    "toolmem.rules.sentences": "toolmem.sentences.split_text",
    **_merged("rules", "sentences.reading", "chinese english"),
    "toolmem.guidance.fitting": "toolmem.guidance.shown",
    "toolmem.guidance.memory": "toolmem.guidance.tool_memory",
    **_merged("guidance", "guidance.writer_reply", "incremental reply"),
    **_merged("rules", "sentences.demanding", "chinese_cues chinese_duration"),
    **_merged(
        "rules",
        "sentences.demanding",
        "english_bounds english_cue english_duration english_hints english_places english_prohibitions english_wishes "
        "english_words",
    ),
    "toolmem.store.guidance_cache": "toolmem.store.codec",
    "toolmem.store.worker": "toolmem.store.sqlite.worker_threads",
    "toolmem.store.tables": "toolmem.store.sqlite.schema",
    "toolmem.store.lanes": "toolmem.store.sqlite.worker_threads",
    "toolmem.store.tool_rows": "toolmem.store.semantics",
    "toolmem.store.fusion": "toolmem.store.searching",
    "toolmem.store.vector_cache": "toolmem.store.sqlite.search",
    "toolmem.store.exporting": "toolmem.store.sqlite.documents",
    **_merged("rules", "sentences.demanding", "reading"),
    **_merged("rules", "rules.capture.instructions", "decrees"),
    **_merged("rules", "sentences.tools_meant", "tool_words which_tools"),
    **_below(
        "store",
        "store.sqlite",
        "connection documents keyed_records lookup reembedding search tool_reads tool_writes "
        "vector_index verdict_cache workspaces",
    ),
}


class FormerNames:
    """Finds a module by a former name: the same module object, so that its classes are the same classes.

    A finder and a loader without the classes of `importlib.abc`, which brings 40 modules along.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("toolmem."):
            return None
        now = _now(fullname)
        loader: Any = self
        return None if now is None else ModuleSpec(fullname, loader, origin=now)

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one, that nobody keeps."""

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        warn(spec.name, spec.origin)
        sys.modules[spec.name] = now = import_module(spec.origin)
        vars(now).setdefault("__path__", [])  # what is one module now may have been a package, with modules below it
        _keep_exports(now, spec.name)


def _now(name: str) -> str | None:
    beginning = name
    while beginning:
        if beginning in NAMES:
            return NAMES[beginning] + name[len(beginning) :]
        beginning = beginning.rpartition(".")[0]
    return None


def _keep_exports(package: ModuleType, former: str) -> None:
    """Import the package's modules before their exports, so that no module takes the place of a function.

    Importing a module sets it as an attribute of its package, unless it is there already.
    """
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent == package.__name__ and vars(package).get(child, module) is not module:
            sys.modules[f"{former}.{child}"] = module
    for name, now in NAMES.items():
        parent, _, child = name.rpartition(".")
        if parent == former and child in getattr(package, "__all__", ()):
            sys.modules[name] = import_module(now)


def warn(former: str, now: str) -> None:
    """Of a former name, at the line that imports it."""
    message = f"`{former}` is `{now}` since 0.2, and the old name goes with 0.3: import the new one"
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def install() -> None:
    """Before the finders of files: a renamed package's files would be loaded a second time under its former name."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())
