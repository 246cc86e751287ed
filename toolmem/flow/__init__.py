"""The op framework: what an op is, how ops are composed, and how a flow is run.

`op`: an op, its params and its context, and composition by `>>` and `|`. `expression` reads both of
ReMe's dialects. `binding` gives ops their effective params. `checks` finds what is wrong
with a flow before it runs. `runner` runs it and `report` says what happened. `services` is what
ops get from outside. Nothing in this package knows what a tool is.
"""
