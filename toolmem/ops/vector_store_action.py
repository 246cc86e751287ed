"""VectorStoreActionOp: copy, delete, delete_ids, delete_workspace, dump, load and list of a workspace."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path, PurePath
from typing import Any

from toolmem.config.nearest_names import nearest
from toolmem.config.own_folder import refuse_links
from toolmem.errors import RequestError, StoreError
from toolmem.flow.checks import check_workspace
from toolmem.flow.op import Context, Op
from toolmem.formats.memory_dump import read_dump, write_dump
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import ToolMemory
from toolmem.protocols import MemoryStore
from toolmem.providers.usage_log import NAMESPACE as LEDGER
from toolmem.readers.plain_text import counted
from toolmem.rules.effectiveness import NAMESPACE as EFFECTIVENESS
from toolmem.rules.evidence import evidence_here
from toolmem.rules.general_memory import MEMORY_PREFIX
from toolmem.rules.identity import RULE_PREFIX
from toolmem.rules.kept_rules import end_workspace
from toolmem.rules.speakers import allowed_speaker
from toolmem.rules.stored_rules import read_stored
from toolmem.stored import CallFailure, Document, RawRecord

KINDS = ("tool_memories", "rules", "notes", "ledger_records", "tool_statistics")


async def held(store: MemoryStore, workspace: str) -> dict[str, int]:
    """Tool memories, rules (whatever their status), notes of agents, records of the ledger, statistics of tools."""
    records = await store.list_raw(workspace, None)
    counted = Counter(_kind(record) for record in records)
    rules = [record for record in records if record.key.startswith(RULE_PREFIX)]
    counted["rules"] = len(read_stored(rules).rules)
    counted["tool_memories"] = len(await store.tool_names(workspace))
    return {kind: counted[kind] for kind in KINDS}


def _kind(record: RawRecord) -> str:
    if record.key.startswith(MEMORY_PREFIX):
        return "notes"
    return {LEDGER: "ledger_records", EFFECTIVENESS: "tool_statistics"}.get(record.namespace, "")


DELETE_WORKSPACE = "delete_workspace"
_KEEP_ALL = 2**31 - 1  # a copy keeps what it finds
_LONGEST_PATH = 200  # bytes; a file's name may have 255, and a dump is written under a longer one first


class VectorStoreActionOp(Op):
    """Act on a whole workspace.

    `dump` and `load` take a `path` inside `dump_dir` (a folder, or a file that ends in .jsonl; default: the folder
    itself) and use the file `<workspace_id>.jsonl` in a folder. `load` validates the whole file first, merges by tool
    and replaces nothing; with `replace` the tool memories that were there go first. `copy` takes over
    `src_workspace_id`. `list` answers whole memories, calls included. `delete` takes the tool memories alone; rules,
    notes and the ledger go only by `delete_workspace`, with the workspace named once more as `confirm`.
    """

    reads = ("workspace_id", "action")
    optional = ("path", "src_workspace_id", "memory_ids", "confirm", "replace")

    async def execute(self, context: Context) -> None:
        actions = {
            "copy": self._copy,
            "delete": self._delete,
            "delete_ids": self._delete_ids,
            DELETE_WORKSPACE: self._delete_workspace,
            "dump": self._dump,
            "load": self._load,
            "list": self._list,
        }
        action = context["action"]
        if action not in actions:
            hint = nearest(str(action), actions)
            meant = f"; did you mean {hint!r}?" if hint else ""
            raise RequestError(f"action: expected one of {', '.join(actions)}, got {action!r}{meant}", field="action")
        await actions[action](context, await context.services.store(self))

    async def _copy(self, context: Context, store: MemoryStore) -> None:
        source = check_workspace(_text(context, "src_workspace_id"), "src_workspace_id")
        if source == context.workspace:
            raise RequestError("`src_workspace_id` is the workspace itself: name another one", field="src_workspace_id")
        names = await store.tool_names(source)
        if not names:
            self._not_found(context, f"workspace {source!r} holds no tool memories", [source])
            return
        await self._merge(context, store, await _whole(store, source, upkeep=True), "copied", from_=source)

    async def _delete(self, context: Context, store: MemoryStore) -> None:
        count = await store.delete_tools(context.workspace)
        rules = (await held(store, context.workspace))["rules"]
        context.response.metadata.update(deleted=count, rules_kept=rules)
        stay = f"{counted(rules, 'rule')} {'stays' if rules == 1 else 'stay'}"
        context.response.answer = f"Deleted {count} tool memories of workspace {context.workspace}; {stay}"

    async def _delete_workspace(self, context: Context, store: MemoryStore) -> None:
        if allowed_speaker("program") == "agent":
            raise RequestError("action: delete_workspace is not for agents; the user may run it", field="action")
        if context.get("confirm") != context.workspace:
            raise RequestError(
                f"confirm: expected {context.workspace!r}: delete_workspace deletes rules, notes and ledger as well; "
                "`delete` deletes the tool memories alone",
                field="confirm",
            )
        counts = await held(store, context.workspace)
        counts["tool_memories"] = await store.delete_workspace(context.workspace)
        context.response.metadata.update(deleted=counts["tool_memories"], counts=counts)
        told = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
        hold_on = end_workspace(store, context.workspace, evidence_here())
        if hold_on:
            context.response.metadata["rules_hold_on"] = hold_on
            told += f". {counted(hold_on, 'rule')} hold on until the user tells the agent `let them go`"
        context.response.answer = f"Deleted workspace {context.workspace}: {told}"

    async def _delete_ids(self, context: Context, store: MemoryStore) -> None:
        given = context.get("memory_ids")
        ids = [given] if isinstance(given, str) else given
        if not isinstance(ids, list) or not ids or not all(isinstance(i, str) for i in ids):
            raise RequestError("memory_ids: expected a list of memory ids", field="memory_ids")
        deleted = await store.delete_memories(context.workspace, ids)
        missing = [i for i in dict.fromkeys(ids) if i not in deleted]
        context.response.metadata.update(deleted=len(deleted), not_found=missing, partial=bool(missing and deleted))
        context.response.success = not missing
        gone = f", {len(missing)} not found" if missing else ""
        context.response.answer = f"Deleted {len(deleted)} tool memories{gone}"

    async def _dump(self, context: Context, store: MemoryStore) -> None:
        path = self._path(context)
        names = await store.tool_names(context.workspace)
        if not names:
            self._not_found(context, f"workspace {context.workspace!r} holds no tool memories", [context.workspace])
            return
        memories = await _whole(store, context.workspace, upkeep=True)
        try:
            count = await asyncio.to_thread(write_dump, path, memories)
        except OSError as error:
            raise StoreError(f"the dump {path.name!r} cannot be written ({error.strerror})") from error
        told = _as_configured(path, context.services.settings.dump_dir)
        context.response.metadata.update(path=str(told), dumped=count)
        context.response.answer = f"Dumped {count} tool memories to {told}"

    async def _load(self, context: Context, store: MemoryStore) -> None:
        path = self._path(context)
        dump_dir = context.services.settings.dump_dir
        if not path.is_file():
            looked = _as_configured(path, dump_dir)
            raise RequestError(f"path: there is no dump {str(looked)!r} ({_inside(dump_dir)})", field="path")
        read = await asyncio.to_thread(
            read_dump,
            path,
            workspace=context.workspace,
            clock=context.services.clock,
            time_zone=context.services.settings.time_zone,
        )
        context.response.metadata["passed_over"] = read.passed_over
        if context.get("replace"):  # the whole file is known to be good; a load that is cut off is done again
            context.response.metadata["replaced"] = await store.delete_tools(context.workspace)
        await self._merge(context, store, read.memories, "loaded", from_=path.name)

    async def _list(self, context: Context, store: MemoryStore) -> None:
        memories = await _whole(store, context.workspace)
        context.response.metadata["memory_list"] = [memory.reply() for memory in memories]
        context.response.answer = f"{len(memories)} tool memories in workspace {context.workspace}"

    async def _merge(
        self, context: Context, store: MemoryStore, memories: list[ToolMemory], done: str, *, from_: str
    ) -> None:
        added = duplicates = 0
        failures: list[CallFailure] = []
        embedder = await context.services.embedder(self)
        for position, memory in enumerate(memories, start=1):
            text = f"{memory.when_to_use}\n{memory.content}"
            document = Document(text, (await embedder.embed([text]))[0]) if memory.content else None
            appended = await store.merge(context.workspace, memory, _KEEP_ALL, document=document)
            added += appended.stored
            duplicates += len(appended.duplicates)
            failures += appended.failures
            context.progress(position, len(memories), done)
        context.response.metadata.update(
            {
                done: len(memories),
                "calls_added": added,
                "duplicates": duplicates,
                "failures": [{"index": f.index, "tool_name": f.tool_name, "error": f.error} for f in failures],
                "partial": bool(failures),
            }
        )
        context.response.success = not failures
        failed = f", {len(failures)} failed" if failures else ""
        context.response.answer = (
            f"{done.capitalize()} {len(memories)} tool memories from {from_}: "
            f"{added} calls added, {duplicates} there already{failed}"
        )

    @staticmethod
    def _not_found(context: Context, answer: str, names: list[str]) -> None:
        context.response.success = False
        context.response.answer = answer
        context.response.metadata["not_found"] = names

    @staticmethod
    def _path(context: Context) -> Path:
        """The file that `path` names; never outside `dump_dir`."""
        configured = context.services.settings.dump_dir
        try:
            refuse_links(Path(configured).absolute())
        except OSError as error:
            raise StoreError(f"dump_dir: {error}") from None
        folder = Path(configured).resolve()
        given = context.get("path") or ""
        if not isinstance(given, str):
            raise RequestError(f"path: expected text, got {type(given).__name__}", field="path")
        asked = PurePath(given)
        try:
            path = (folder / asked).resolve()
        except (ValueError, OSError):  # a zero byte, a lone surrogate, links in a circle
            raise RequestError("path: expected the name of a file or folder", field="path") from None
        if len(given.encode()) > _LONGEST_PATH:
            raise RequestError(f"path: longer than {_LONGEST_PATH} bytes", field="path")
        file = path if path.suffix == ".jsonl" else path / f"{context.workspace}.jsonl"
        if not all(each.is_relative_to(folder) for each in (path, file.resolve())):  # the file may be a link
            raise RequestError(f"path: {given!r} lies outside the dump folder ({_inside(configured)})", field="path")
        return file


def _inside(dump_dir: str) -> str:
    return f"paths are taken inside `dump_dir`, which is {dump_dir!r}"


def _as_configured(file: Path, dump_dir: str) -> Path:
    """The file under `dump_dir` as it is configured: where that lies on this machine is not the caller's affair."""
    return Path(dump_dir) / file.relative_to(Path(dump_dir).resolve())


async def _whole(store: MemoryStore, workspace: str, *, upkeep: bool = False) -> list[ToolMemory]:
    """`upkeep`: with what the next summary in another place needs."""
    stored = await store.memories(workspace, None, calls=True)
    return [tool_memory(memory, include_calls=True, upkeep=upkeep) for memory in stored]


def _text(context: Context, key: str) -> str:
    value: Any = context.get(key)
    if not isinstance(value, str) or not value.strip():
        raise RequestError(f"{key} is required for this action", field=key)
    return value
