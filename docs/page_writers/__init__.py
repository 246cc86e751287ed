"""Pages of the documentation that are written from the code, from real runs and from benchmark results.

One module per subject; each has functions without arguments that answer a page as Markdown. `docs/generate.py` knows
which page each of them writes.
"""
