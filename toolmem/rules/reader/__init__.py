"""Read plain sentences of a user without a model, in English and Chinese.

`demands.demands(message, ran, tools)` finds the sentences that limit what the agent does with its
tools, and `unkept` names those that sound like it and were not kept. `lifted(message, rules)` finds
the rule that a sentence takes back. In doubt, they find nothing. `possibly_lifted` finds the rules
that a sentence may take back, and `may_mean` says whether a quote may mean a given rule.

`pasted` recognizes text that the user did not type, and `own_text` the sentences that they did.
`demands` finds the sentences that demand something, and for how long; `tools`, the tools that a
demand is about; `conditions`, the calls that it forbids, if every word is understood, by tests of
`call_tests`. `lifts` finds the rule that is taken back. `words` is the vocabulary.
"""

from toolmem.rules.reader.demands import Demand, too_long
from toolmem.rules.reader.lifts import lifted, may_mean, possibly_lifted

__all__ = ["Demand", "lifted", "may_mean", "possibly_lifted", "too_long"]
