"""Hooks of coding agents: rules and guidance at the start, a decision before each call, a record.

`__main__` answers one event: `protocol` reads it and writes the answer in the agent's dialect, as
the table of `agents` says, and `outputs` reads what a tool answered. `handle` does what is to be
done: `start` at the start of a session, `prompts` with what the user types, `notes` where a model
notes a demand. `ledger` remembers a session between its hooks.

`installs` puts the hook into an agent's settings and takes it out again, `mcp_entries` the proxy;
`json_text` changes their bytes alone. `plugins/` is for agents that load JavaScript. `doctor` tells
whether a hook works, `state` keeps notes of installs and a log of failures.
"""
