"""The guidance of a tool, made from its judged calls, and advice for a single call.

`card` writes guidance without a model. `observations` reads the arguments of calls, `evidence` says
how they ended and which followed one another, `context` what other tools did in the same
conversations. `differences` tells how two calls differ, and whether one repaired the other;
`harmful` knows calls that must not be recommended. `failures` counts failures and repairs from one
summary to the next; `changes` and `shown_values` decide what of a repair may be shown, and
`named_parameters` what is known of a parameter. `wording` and `card.yaml` hold the sentences.

`model_writer` asks a model, and puts its text before the card's lines. `skip` decides whether
guidance is written again, `shown` cuts it to a number of tokens. `advice` is for one call.
"""
