"""The data types that every part of toolmem uses: calls, tools, rules, decisions, and protocols.

`calls`: a tool call and its verdict. `tools`: the state of a tool in a store. `guidance`: the
guidance of a tool. `rules`: what a user demands. `decisions`: whether a call may run. `records`:
keyed records, searchable documents and search hits. `protocols`: what stores, judges, writers,
models and clocks implement.

Times have a zone and are kept in UTC. `None` means unknown, never zero.
"""
