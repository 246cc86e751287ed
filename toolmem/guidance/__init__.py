"""The guidance of a tool, made from its judged calls, and advice for a single call.

`card` writes guidance without a model. `observations` reads the arguments of calls, `evidence` says
how they ended and which followed one another, `failures` counts failures and repairs from one
summary to the next. `recoveries` finds the call that repaired a failure, `differences` how it
differed from the one that failed; `changes` and `shown_values` decide what of it may be shown.
`wording` and `card.yaml` hold the sentences.

`model_writer` asks a model, and puts its text before the card's lines. `skip` decides whether
guidance is written again, `shown` cuts it to a number of tokens. `advice` is for one call;
`named_parameters` finds the parameters that its error names.
"""
