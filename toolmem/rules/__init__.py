"""What the user demands of an agent, kept as rules on its tools and told in its prompt.

`capture` reads the user's messages: `reader/` finds plain sentences that demand something without a
model, `notes/` verifies what a model wrote down. `store` keeps rules. `identity` says which rules
are the same, `changes` who may loosen a rule, `review` what a person decides about a rule, and
`replies` follows `undo` and the like.
`prompt` renders the pinned block, also for a session that begins. `team_file` reads and writes the
rules that a team keeps in its repository. `failures` learns from how the calls of a `turn` ended;
`memories` keeps texts of the agents themselves.
"""
