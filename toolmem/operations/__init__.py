"""Everything that toolmem can be asked, each described once by a decorated function.

`operation` has the decorator. HTTP, JSON-RPC, MCP and agents' own tools loop over `OPERATIONS`.
In `methods` they are methods of memories and clients, in `operation_op` ops of flows. `calls` and
`guidance` are about what works; `rules`, `demands` and `guard` about what the user demands;
`memories` about what agents remember. `results` has the return types.
"""

from toolmem.operations import calls, demands, guard, guidance, memories, rules
from toolmem.operations.operation import OPERATIONS, AgentTool, Operation
from toolmem.operations.operation_op import OperationOp

__all__ = ["OPERATIONS", "AgentTool", "Operation", "OperationOp"]
__all__ += ["calls", "demands", "guard", "guidance", "memories", "rules"]
