"""From a recording to tables.

`evaluation` judges a recording and summarizes its tools. `csv_files` writes what came of it.
"""
