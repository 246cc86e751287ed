"""The decision about a call before it runs, from rules of the user and from what failed before.

`guard` asks every source and stores what a `conversation` learned. The sources: `rule_cache` holds
the compiled rules of a workspace, `history` the earlier calls that rules ask for, `repeats` the
exact calls that failed (`failure_output` reads their output), `known_names` the tables and columns
that do not exist, and `self_protection` is one rule that guards toolmem itself. `decision` combines
their findings, and `consent` follows what the user says or answers to a decision.

`stores` opens the project's and the user's store. `rule_copies` has the rules that bind if a store
is lost, `pending_demands` the demands that a store could not take. `shown_guidance` removes from
guidance the calls that a rule stops, `replay` checks a recording, `trial` tries one rule.
"""

from toolmem.guard.guard import Guard

__all__ = ["Guard"]
