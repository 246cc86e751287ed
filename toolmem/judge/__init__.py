"""One call in, a verdict out: by rules, or by a model.

`model_judge` asks a model, with `prompts.yaml`, and reads its `reply`. The others are the rules.

`check` puts the rules together: the recorded flag and the evidence in the output become a verdict.
`expectation` says what kind of output to expect of a tool and its input. `literals` reads JSON and
printed Python values. `envelope`, with `body`, finds the failures that the structure of an answer
shows, `text` those described in words, `programs` those that shells and programs print; their words
are in `words.yaml`. `evidence` is what they find. `schema` checks the input against the tool's JSON
Schema.
"""
