"""The calls that are kept of a tool, and those in the log, as records or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import RootModel

from toolmem.config.extras import need_pandas
from toolmem.errors import RequestError
from toolmem.guidance.outcomes import place_in_conversation
from toolmem.models import ToolCallResult
from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import MemoryStore, Services

if TYPE_CHECKING:
    import pandas as pd

LOGGED = 1000  # calls from the log, where nobody says how many
CONVERSATION = 10_000  # calls of a longer one are cut off before they are brought in order


class Calls(RootModel[list[ToolCallResult]]):
    """Calls, the oldest first: of each tool, or of all where they come from the log."""

    def __len__(self) -> int:
        return len(self.root)

    def __iter__(self) -> Iterator[ToolCallResult]:  # type: ignore[override]  # pydantic's own yields its field
        return iter(self.root)

    def __getitem__(self, position: int) -> ToolCallResult:
        return self.root[position]

    def records(self) -> list[ToolCallResult]:
        """The calls as a list."""
        return list(self.root)

    def to_frame(self) -> pd.DataFrame:
        """One row per call, one column per field. Needs pandas."""
        need_pandas()
        import pandas as pd

        return pd.DataFrame([call.model_dump() for call in self.root], columns=list(ToolCallResult.model_fields))


@rpc_operation("memory.calls", reads_only=True)
async def calls(
    services: Services,
    /,
    tool_names: Sequence[str] | None = None,
    *,
    recent: Annotated[int | None, "Of each tool the newest so many in its window."] = None,
    conversation_id: Annotated[str | None, "Logged calls of this conversation, in the order of their times."] = None,
    limit: Annotated[int | None, "The newest so many logged calls."] = None,
    workspace_id: str | None = None,
) -> Calls:
    """The kept calls of these tools (none given: of all), the newest `recent` of each.

    With `conversation_id` or `limit` (1000 where it is not given), calls from the log, which also holds what the
    windows of the tools have dropped. Raises RequestError.
    """
    from toolmem.ops import RetrieveToolMemoryOp

    store = await services.store(RetrieveToolMemoryOp())
    workspace, names = workspace_id or DEFAULT_WORKSPACE, None if tool_names is None else list(tool_names)
    if conversation_id is not None or limit is not None:
        if recent is not None:
            raise RequestError("recent: is of the windows; for calls from the log give `limit` instead", field="recent")
        return Calls(await _logged(store, workspace, names, conversation_id, LOGGED if limit is None else limit))
    stored = await store.memories(workspace, names, calls=True, recent=recent)
    return Calls([call for each in stored for call in each.calls])


async def _logged(
    store: MemoryStore, workspace: str, tools: Sequence[str] | None, conversation: str | None, limit: int
) -> list[ToolCallResult]:
    """The newest `limit`, oldest first. Those of a conversation by their times: a batch of calls comes tool by tool."""
    if limit < 1:
        raise RequestError(f"limit: expected at least 1, got {limit}", field="limit")
    asked: dict[str, Any] = {"newest": True, "limit": limit if conversation is None else max(limit, CONVERSATION)}
    found = [
        each
        for tool in ([None] if tools is None else dict.fromkeys(tools))
        for each in await store.call_log(workspace, conversation=conversation, tool=tool, **asked)
    ]
    calls = [each.call for each in sorted(found, key=lambda each: each.position)]
    return (calls if conversation is None else sorted(calls, key=place_in_conversation))[-limit:]
