"""What an agent is told of a tool.

observations   the arguments of a call, the SQL or command in them, its part of the tool
evidence       how calls ended, which followed one another, and what they say of the tool
differences    how the call that worked differed from the one that failed
shown_values   what may be shown of a call to others
changes        a change from one call to another, as it may be shown
failures       failures and repairs, counted from one summary to the next
card           the card; `wording` and `card.yaml` hold its sentences
shown          guidance within a number of tokens, and a tool's memory as callers see it
model_writer   guidance by a model, its text before the card's lines
advice         lines for one call; `named_parameters` on the parameters an error names
skip           whether guidance is written again
"""
