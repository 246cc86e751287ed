"""From a recording to a report: evaluation, success rates, tables, charts.

`evaluation` judges a recording and summarizes its tools, `tables` makes rows of the result.
`report` writes them to files; `frames` and `charts` show them in notebooks. `rates` has the share
of calls that worked with its interval, `compare` compares two evaluations, `costs` counts what
summaries would cost.
`importing` adds the calls of recordings to a memory: `hook_calls` finds calls that a hook recorded,
`import_runs` lists imports and removes one, `older_failures` adds failures that are too old for a
summary. `backtest` measures whether guidance from older calls fits newer ones.
"""

from toolmem.research.costs import summarization_costs as summarization_costs
