"""The flows of the default configuration as calls, and `run` for any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.client.calls import WORKSPACE, FlowCall, HealthCall
from toolmem.client.retrieved import Retrieved

if TYPE_CHECKING:
    from toolmem.schema import FlowResponse, ToolCallResult, ToolMemory

Record = Mapping[str, Any]
Names = str | Sequence[str]  # separated by commas, or a list (for names that hold a comma)


def run(flow: str, /, **request: Any) -> FlowCall[FlowResponse]:
    """Run a flow by name, one of your own configuration as well. Never sent twice once it may have arrived."""
    return FlowCall(flow, request, _as_it_is)


def health() -> HealthCall:
    """What the service says of itself: its version, its store, its models."""
    return HealthCall()


def add_tool_call_results(
    calls: Sequence[Record | ToolCallResult],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    force: bool | None = None,
    workspace_id: str | None = None,
) -> FlowCall[FlowResponse]:
    """Judge calls and keep them. A bad record is named in `metadata["evaluation"]["failures"]`, the others are kept.

    Where every call has an `id`, a cut connection is survived: the same ids sent again are counted as duplicates and
    change nothing. Without ids an answer that was lost leaves open whether the calls are stored.
    """
    records = list(calls)
    request = {"tool_call_results": records, "tools": tools, "force": force, WORKSPACE: workspace_id}
    return FlowCall("add_tool_call_result", request, _as_it_is, repeatable=bool(records) and all(map(_has_id, records)))


def summarize(
    tool_names: Names,
    *,
    force: bool | None = None,
    data_from: str | None = None,
    workspace_id: str | None = None,
) -> FlowCall[FlowResponse]:
    """Distil guidance from the newest judged calls; tools with nothing new stand in `metadata["skipped"]`."""
    request = {"tool_names": _names(tool_names), "force": force, "data_from": data_from, WORKSPACE: workspace_id}
    return FlowCall("summary_tool_memory", request, _as_it_is)


def retrieve(
    tool_names: Names | None = None,
    *,
    query: str | None = None,
    top_k: int | None = None,
    include_calls: bool | None = None,
    workspace_id: str | None = None,
) -> FlowCall[Retrieved]:
    """The memories of the tools named, in that order, or those that fit the query best.

    A tool without a memory is not in the list; the list's `not_found` names it.
    """
    request = {
        "tool_names": _names(tool_names),
        "query": query,
        "top_k": top_k,
        "include_calls": include_calls,
        WORKSPACE: workspace_id,
    }
    return FlowCall("retrieve_tool_memory", request, _retrieved, repeatable=True)


def list_memories(*, workspace_id: str | None = None) -> FlowCall[list[ToolMemory]]:
    """Every memory of the workspace, calls included."""
    return FlowCall("vector_store", {"action": "list", WORKSPACE: workspace_id}, _memories, repeatable=True)


def copy_workspace(src_workspace_id: str, *, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Take over the memories of another workspace; what is there stays."""
    return _store_action("copy", workspace_id, src_workspace_id=src_workspace_id)


def delete_workspace(*, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Delete everything in the workspace: tool memories, rules, notes, ledger; `metadata["counts"]` names them."""
    request = {"action": "delete_workspace", WORKSPACE: workspace_id}
    return FlowCall("vector_store", request, _as_it_is, confirmed=True)


def delete_tools(*, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Delete every tool memory of the workspace; rules, notes and the ledger stay."""
    return _store_action("delete", workspace_id)


def delete_memories(memory_ids: Sequence[str], *, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Delete memories by id; those that are not there stand in `metadata["not_found"]`."""
    return _store_action("delete_ids", workspace_id, memory_ids=list(memory_ids))


def dump(path: str | None = None, *, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Write the workspace to a JSON Lines file of the service's machine, inside its `dump_dir`."""
    return _store_action("dump", workspace_id, path=path)


def load(path: str | None = None, *, workspace_id: str | None = None) -> FlowCall[FlowResponse]:
    """Merge such a file into the workspace; the same file loaded twice adds nothing."""
    return _store_action("load", workspace_id, path=path)


def retry_evaluations(
    tool_names: Names | None = None,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    workspace_id: str | None = None,
) -> FlowCall[FlowResponse]:
    """Judge the kept calls whose evaluation failed."""
    request = {"tool_names": _names(tool_names), "tools": tools, WORKSPACE: workspace_id}
    return FlowCall("retry_evaluations", request, _as_it_is)


def rejudge(
    tool_names: Names | None = None,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    force: bool | None = None,
    workspace_id: str | None = None,
) -> FlowCall[FlowResponse]:
    """Judge all kept calls again, with the judge that the service has now."""
    request = {"tool_names": _names(tool_names), "tools": tools, "force": force, WORKSPACE: workspace_id}
    return FlowCall("rejudge", request, _as_it_is)


def capture_rules(
    user_message: str | None = None,
    *,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    tools: Sequence[Any] | None = None,
    session_id: str | None = None,
    workspace_id: str | None = None,
) -> FlowCall[FlowResponse]:
    """Keep what a turn gives as rules: standing demands of the user, and tools that failed again and again."""
    request = {
        "user_message": user_message,
        "tool_calls": tool_calls,
        "tools": tools,
        "session_id": session_id,
        WORKSPACE: workspace_id,
    }
    return FlowCall("capture_tool_rules", request, _as_it_is)


def _store_action(action: str, workspace_id: str | None, **more: Any) -> FlowCall[FlowResponse]:
    return FlowCall("vector_store", {"action": action, WORKSPACE: workspace_id, **more}, _as_it_is)


def _as_it_is(response: FlowResponse) -> FlowResponse:
    return response


def _memories(response: FlowResponse) -> list[ToolMemory]:
    from toolmem.schema import ToolMemory

    return [ToolMemory.model_validate(memory) for memory in response.metadata.get("memory_list", [])]


def _retrieved(response: FlowResponse) -> Retrieved:
    return Retrieved(_memories(response), [str(name) for name in response.metadata.get("not_found", [])])


def _names(given: Names | None) -> str | list[str] | None:
    return given if given is None or isinstance(given, str) else list(given)


def _has_id(record: Record | ToolCallResult) -> bool:
    given = record.get("id") if isinstance(record, Mapping) else getattr(record, "id", None)
    return isinstance(given, str) and bool(given.strip())
