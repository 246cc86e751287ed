"""The calls that are kept of a tool, as records or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import RootModel

from toolmem.config.extras import need_pandas
from toolmem.models import ToolCallResult
from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import Services

if TYPE_CHECKING:
    import pandas as pd


class Calls(RootModel[list[ToolCallResult]]):
    """Calls, the oldest of each tool first."""

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
    recent: int | None = None,
    workspace_id: str | None = None,
) -> Calls:
    """The kept calls of these tools (none given: of all), the newest `recent` of each."""
    from toolmem.ops import RetrieveToolMemoryOp

    store = await services.store(RetrieveToolMemoryOp())
    names = None if tool_names is None else list(tool_names)
    stored = await store.memories(workspace_id or DEFAULT_WORKSPACE, names, calls=True, recent=recent)
    return Calls([call for each in stored for call in each.calls])
