"""The ops of tool memory, in the order in which a call meets them.

`ParseToolCallResultOp` reads records and judges them (`judging`). `UpdateVectorStoreOp`, in the
same module, stores the judged calls. `SummaryToolMemoryOp` writes guidance from them, and skips
tools without new calls. `RetrieveToolMemoryOp` returns guidance, by name or by query (`retrieval`).
`RetryEvaluationsOp` and `RejudgeOp` judge stored calls again, `VectorStoreActionOp` acts on whole
workspaces, `AdviseToolCallOp` says what worked after an error. `dispatch` sends requests to a judge
or a writer. Importing this package registers the ops.
"""

from toolmem.ops.advise_tool_call import AdviseToolCallOp
from toolmem.ops.judging import RejudgeOp, RetryEvaluationsOp
from toolmem.ops.parse_tool_call_result import ParseToolCallResultOp, UpdateVectorStoreOp
from toolmem.ops.retrieve_tool_memory import RetrieveToolMemoryOp
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.ops.vector_store_action import VectorStoreActionOp

__all__ = [
    "AdviseToolCallOp",
    "ParseToolCallResultOp",
    "RejudgeOp",
    "RetrieveToolMemoryOp",
    "RetryEvaluationsOp",
    "SummaryToolMemoryOp",
    "UpdateVectorStoreOp",
    "VectorStoreActionOp",
]
