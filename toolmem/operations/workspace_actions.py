"""What is done with all tool memories of a workspace: list, copy, delete, dump, load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from toolmem.models import FlowResponse
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Answer, Memories

FilePath = Annotated[str | None, "dump and load. A file or folder inside dump_dir."]

_store_action = partial(
    flow_operation,
    "vector_store",
    about="Copy, delete, dump, load or list the tool memories of a workspace; or delete the whole workspace.",
)


@_store_action(always={"action": "copy"})
def copy_workspace(
    answer: FlowResponse,
    /,
    src_workspace_id: Annotated[str, "copy. The workspace to copy from."],
    *,
    workspace_id: str | None = None,
) -> Answer:
    """Take over the memories of another workspace; what is there stays."""
    return Answer.of(answer)


@_store_action(always={"action": "delete"})
def delete_tools(answer: FlowResponse, /, *, workspace_id: str | None = None) -> Answer:
    """Delete every tool memory of the workspace with its logged calls; rules, notes and the ledger stay."""
    return Answer.of(answer)


@_store_action(always={"action": "delete_ids"})
def delete_memories(
    answer: FlowResponse,
    /,
    memory_ids: Annotated[Sequence[str], "delete_ids. The memories to delete."],
    *,
    workspace_id: str | None = None,
) -> Answer:
    """Delete memories by id; those that are not there stand in `metadata["not_found"]`."""
    return Answer.of(answer)


@_store_action(always={"action": "delete_workspace"}, confirms="confirm")
def delete_workspace(
    answer: FlowResponse,
    /,
    confirm: Annotated[
        str | None, "delete_workspace. The workspace once more; rules, notes, ledger and logs go with it."
    ] = None,
    *,
    workspace_id: str | None = None,
) -> Answer:
    """Delete all of the workspace, its logs too: memories, rules, notes, ledger; `metadata["counts"]` names these."""
    return Answer.of(answer)


@_store_action(always={"action": "dump"})
def dump(answer: FlowResponse, /, path: FilePath = None, *, workspace_id: str | None = None) -> Answer:
    """Write the workspace to a JSON Lines file inside `dump_dir`, on the machine that has the store."""
    return Answer.of(answer)


@_store_action(always={"action": "load"})
def load(
    answer: FlowResponse,
    /,
    path: FilePath = None,
    *,
    replace: Annotated[bool | None, "load. The tool memories that are there go first; rules stay."] = None,
    workspace_id: str | None = None,
) -> Answer:
    """Merge such a file into the workspace; the same file loaded twice adds nothing."""
    return Answer.of(answer)


@_store_action(always={"action": "list"}, reads_only=True)
def memories(answer: FlowResponse, /, *, workspace_id: str | None = None) -> Memories:
    """Every memory of the workspace, calls included."""
    return Memories.of(answer)
