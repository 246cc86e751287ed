"""Where toolmem stands in the agents that people run: one file per agent translates its events and toolmem's answers.

A hook is a process that the agent starts at each step (`toolmem.hosts.hook_process`): it reads one event, acts on it by
`toolmem.engine`, and answers. `toolmem.hosts.adapters` are the same for agent frameworks in Python.
"""
