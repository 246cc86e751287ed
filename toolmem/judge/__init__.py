"""One call in, a verdict out: by rules, or by a model.

`check` is the rule-based judge: it makes a verdict of the recorded flag and the evidence of failure
in the output. Three modules find such `evidence`: `envelope`, with `body`, in the output's
structure, `text` in its words, `programs` in what shells and programs print (`words.yaml` has the
words). `expectation` says what kind of output to expect of a call, `literals` reads JSON and
printed Python values, `schema` checks the input against the tool's JSON Schema.

`model_judge` asks a model, with `prompts.yaml`; `reply` reads the answer.
"""
