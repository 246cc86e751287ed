"""From a recording to a report: evaluation, tables, charts.

`evaluation` judges a recording and summarizes its tools, `tables` makes rows of the result.
`rates` has the share of calls that worked with its interval, `compare` two evaluations.
`costs` counts what summaries would cost.
`importing` keeps the calls of recordings in a memory and counts what they teach: `hook_calls` finds
those that a hook recorded, `import_runs` remembers each import, and takes it back.
`older_failures` counts those that summaries do not read, and `backtest` asks guidance of older
calls about newer ones.
`report` writes them to files; `frames` and `charts` show them in notebooks.
"""

from toolmem.research.costs import summarization_costs as summarization_costs
