"""The words that every part of toolmem uses: calls, tools, rules, decisions, and protocols.

`calls`: a tool call and its verdict. `tools`: what a store holds of a tool. `guidance`: its usage
guidance. `decisions`: whether a call may run. `records`: keyed records, searchable documents
and what a search finds. `rules`: what a user demands. `protocols`: what toolmem asks of stores,
judges, writers and clocks.

Times have a zone and are kept in UTC. `None` means unknown, never zero.
"""
