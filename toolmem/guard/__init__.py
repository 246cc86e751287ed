"""The decision about a call before it runs, from rules of the user and from what failed before.

`guard` asks every source and stores what a `conversation` learned. `rule_cache` holds the compiled
rules of a workspace, `rule_copies` what binds where a store is lost, `aside` the demands that a
store could not take. `repeats` knows the exact
calls that failed, and `failure_output` reads their output; `history` knows the earlier calls that
rules ask for; `known_names` the tables and columns that do not exist; `self_protection` is one rule
that guards toolmem itself. `decision` combines the findings, and `consent` follows what the user
says or answers to it. `shown_guidance` is guidance without the calls that a rule stops. `stores`
opens the project's and the user's store, `replay` checks a recording, `trial` tries one rule.
"""

from toolmem.guard.guard import Guard

__all__ = ["Guard"]
