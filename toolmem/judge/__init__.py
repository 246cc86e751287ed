"""One call in, a verdict out: by rules, or by a model.

`check` is the rule-based judge: it makes a verdict of the recorded flag and the evidence of failure
in the output. `expectation` says what kind of output to expect of a call, `literals` reads JSON and
printed Python values. `envelope`, with `body`, finds the `evidence` that the structure of an output
shows, `text` what it says in words, `programs` what shells and programs print; their words are in
`words.yaml`. `schema` checks the input against the tool's JSON Schema.

`model_judge` asks a model, with `prompts.yaml`; `reply` reads the answer.
"""
