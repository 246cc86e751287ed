"""Read plain sentences of a user without a model, in English and Chinese.

`demands.demands(message, ran, tools)` finds the sentences that limit what the agent does with its
tools. `lifted(message, rules)` finds the rule that a sentence takes back. In doubt, both find
nothing: `demands.unkept` lists sentences that only look like demands, `possibly_lifted` the rules
that a sentence may take back. `may_mean` says whether a quote may take back a given rule.

`pasted` recognizes text that the user did not type. `own_text` finds the user's own sentences.
`demands` finds the sentences that demand something, and for how long; `tools`, the tools that a
demand is about; `conditions`, the calls that it forbids, if every word is understood, by tests of
`call_tests`. `lifts` finds the rule that is taken back. `words` is the vocabulary.
"""

from toolmem.rules.reader.demands import Demand, too_long
from toolmem.rules.reader.lifts import lifted, may_mean, possibly_lifted

__all__ = ["Demand", "lifted", "may_mean", "possibly_lifted", "too_long"]
