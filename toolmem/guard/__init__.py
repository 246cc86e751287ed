"""The decision about a call before it runs, from rules of the user and from what failed before.

`guard` asks every source and keeps what a conversation learned. `rule_cache` holds the rules of a
workspace, compiled. `repeats` knows the exact calls that failed, `failure_output` reads what they
wrote; `history` knows which earlier calls rules ask for; `known_names` the tables and columns that
do not exist; `self_protection` is one rule that guards toolmem itself. `decision` makes one answer
of all. `stores` are the project's and the user's, `replay` runs a recording through all sources.
"""

from toolmem.guard.guard import Guard

__all__ = ["Guard"]
