"""Hooks of coding agents: rules and guidance at the start, a decision before each call, a record.

`__main__` answers one event: `protocol` reads it and writes the answer in the agent's dialect, as
the table of `agents` says; `handle` does what is to be done. `installs` puts the hook into an
agent's settings and takes it out again; `doctor` tells whether it works.
"""
