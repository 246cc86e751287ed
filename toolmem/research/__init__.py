"""From a recording to a report: evaluation, tables, charts.

`evaluation` judges a recording and summarizes its tools. `tables` counts what came of it;
`csv_files` and `page` write it down, `frames` and `charts` show it in notebooks.
"""
