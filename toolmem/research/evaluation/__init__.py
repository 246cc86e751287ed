"""The evaluation of a recording (`toolmem evaluate`): calls in; verdicts, guidance and a report out.

read -> add_tool_call_result (95 %) -> summary (all new) -> summary (nothing new)
     -> add_tool_call_result (the newest 5 % of each tool) -> summary -> what is stored now -> report

`run` is the whole of it, into a folder; `evaluator` what lies between reading and the report; `folder` the folder.
"""

from toolmem.research.evaluation.evaluator import Evaluator, hold_back
from toolmem.research.evaluation.run import evaluate

__all__ = ["Evaluator", "evaluate", "hold_back"]
