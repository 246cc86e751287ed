"""The op framework: what an op is, how ops are composed, and how a flow is run.

`op` has ops, their params and context, and composition by `>>` and `|`. `expression` parses flows
in both of ReMe's dialects. `binding` gives ops their effective params. `checks` finds problems of a
flow before it runs. `runner` runs it, and `report` has the events and the report of a run.
`services` has the protocols of stores, models and the like that ops use.
"""
