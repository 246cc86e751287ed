"""What memory knows, before a call runs: rules that can be checked, and what failed before.

`view` is what a condition sees of a call; `call_conditions` checks conditions; `said_conditions` makes them of what a
user said.
"""
