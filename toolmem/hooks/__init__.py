"""Hooks of coding agents: rules and guidance at the start, a decision before each call, a record.

`__main__` answers one event: `protocol` reads it and writes the answer as the table of `agents`
says, and `outputs` reads the output of a tool. `handle` checks and records calls; `sessions`
answers the start of a session and summarizes after its end, `prompts` handles what the user types,
and `notes` the command by which a model notes a demand. `team_rules` offers the rules in the
repository's file and follows its changes. `session_state` stores what one hook of a session knows
for the next, and `hooks_log` writes down failures.

`installs` puts the hook into an agent's settings and takes it out again, `mcp_entries` the proxy;
`json_text` edits the JSON and leaves every other byte, and `install_notes` remembers what was
written. `plugins/` is for agents that load JavaScript. `doctor` checks whether a hook works.
"""
