"""The guard holds a call, before it runs, against rules that can be checked and against what failed before.

`conversation` decides on each call of a conversation by what `decision` finds against it; `replaying` does so for
recorded calls (`toolmem guard replay`). `view` is what a condition sees of a call; `call_conditions` checks
conditions; `said_conditions` makes them of what a user said.
"""
