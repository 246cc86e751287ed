"""What an agent is told of a tool.

outcomes       how a call ended, and which calls followed one another
observations   the arguments of a call, the SQL or command in them, its part of the tool
differences    how the call that worked differed from the one that failed
shown_values   what may be shown of a call to others
corrections    whether a value was set right or belongs to somebody else
changes        a change from one call to another, as it may be shown
evidence       everything that the calls of one tool say
failures       failures and repairs, counted from one summary to the next
card           the card; `wording` and `card.yaml` hold its sentences
budget         guidance within a number of tokens
skip           whether guidance is written again
statistics     the figures of the kept calls
"""
