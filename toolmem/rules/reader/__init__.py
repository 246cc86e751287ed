"""Read plain sentences of a user without a model, in English and Chinese.

`demands.demands(message, ran, tools)` finds the sentences that limit what the agent does with its
tools, and `unkept` names those that sound like it and were not kept. `lifted(message, rules)` finds
the rule that a sentence takes back. In doubt, they find nothing; `possibly_lifted` finds the rule
that may be meant, and `may_mean` tells of one rule whether a quote may mean it.

`pasted` recognizes text that the user did not type, `own_text` finds the sentences that are left;
`demands` finds those that demand something, and for how long; `tools` the tools that a demand is
about; `conditions` the calls that it forbids, if every word of it is understood, by the tests of
`call_tests`; `lifts` the rule that is taken back. `words` is the vocabulary.
"""

from toolmem.models.rules import UNSCOPED
from toolmem.rules.reader.demands import Demand, too_long, unkept
from toolmem.rules.reader.lifts import lifted, may_mean, possibly_lifted

__all__ = [
    "UNSCOPED",
    "Demand",
    "lifted",
    "may_mean",
    "possibly_lifted",
    "too_long",
    "unkept",
]
