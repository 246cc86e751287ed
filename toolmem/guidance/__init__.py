"""The guidance of a tool, made from its judged calls if any is new; advice for a single call.

`skip` decides whether guidance is written again. `card` writes it without a model: `observations`
reads the arguments of calls; `evidence` finds out which calls worked and which repaired a failure,
with `differences` (how two calls differ), `context` (what other tools did in the conversation) and
`harmful` (calls that must not be recommended). `failures` counts failures and repairs from one
summary to the next. `changes` and `shown_values` decide what of a repair may be shown,
`named_parameters` says what is known of a parameter. `wording` and `card.yaml` hold the sentences.

`model_writer` asks a model, and puts its text before the card's lines. `shown` fits guidance into a
number of tokens. `advice` is for one failed call.
"""
