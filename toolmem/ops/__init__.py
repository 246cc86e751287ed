"""The ops, in the order in which a tool call meets them.

    ParseToolCallResultOp    reads the records, judges each call, leaves judged calls
    UpdateVectorStoreOp      keeps them: one commit per tool, a sliding window, counters that never shrink
    SummaryToolMemoryOp      distils a tool's recent calls into guidance; skips a tool where nothing is new
    RetrieveToolMemoryOp     hands the guidance out, by name or by query
    RetryEvaluationsOp       judges the calls again whose evaluation failed
    RejudgeOp                judges stored calls again with another model or prompt
    VectorStoreActionOp      copy, delete, delete_ids, dump, load, list of a workspace
    CaptureToolRulesOp       what a user demanded in a turn becomes rules
    ToolRulesPromptOp        the block of rules for the system prompt
    NoteDemandOp             what a model noted of the user's words becomes rules
    LiftDemandOp             what a model noted that the user takes back
    CheckToolCallOp          what is to become of a call, before it runs
    AdviseToolCallOp         what is known for a call, before it runs or when it failed

Each op is one thin file: what it reads, what it leaves, and one `execute`.
"""

from toolmem.flow.registry import register
from toolmem.ops.advise_tool_call import AdviseToolCallOp
from toolmem.ops.capture_tool_rules import CaptureToolRulesOp
from toolmem.ops.check_tool_call import CheckToolCallOp
from toolmem.ops.lift_demand import LiftDemandOp
from toolmem.ops.note_demand import NoteDemandOp
from toolmem.ops.parse_tool_call_result import ParseToolCallResultOp
from toolmem.ops.rejudge import RejudgeOp
from toolmem.ops.retrieve_tool_memory import RetrieveToolMemoryOp
from toolmem.ops.retry_evaluations import RetryEvaluationsOp
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.ops.tool_rules_prompt import ToolRulesPromptOp
from toolmem.ops.update_vector_store import UpdateVectorStoreOp
from toolmem.ops.vector_store_action import VectorStoreActionOp

for _op in (
    ParseToolCallResultOp,
    UpdateVectorStoreOp,
    SummaryToolMemoryOp,
    RetrieveToolMemoryOp,
    RetryEvaluationsOp,
    RejudgeOp,
    VectorStoreActionOp,
    CaptureToolRulesOp,
    ToolRulesPromptOp,
    NoteDemandOp,
    LiftDemandOp,
    CheckToolCallOp,
    AdviseToolCallOp,
):
    register(_op)

__all__ = [
    "AdviseToolCallOp",
    "CaptureToolRulesOp",
    "CheckToolCallOp",
    "LiftDemandOp",
    "NoteDemandOp",
    "ParseToolCallResultOp",
    "RejudgeOp",
    "RetrieveToolMemoryOp",
    "RetryEvaluationsOp",
    "SummaryToolMemoryOp",
    "ToolRulesPromptOp",
    "UpdateVectorStoreOp",
    "VectorStoreActionOp",
]
