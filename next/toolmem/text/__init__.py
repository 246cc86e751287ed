"""Reading text that nobody vouches for. Every reader takes time linear in what it reads.

`forms`: how texts are compared. `masking`: secrets, masked; `secret_names` and `secret_spans`
find them. `error_lines` and `error_classes`: which line says what went wrong, and
of what kind it is. `sql`: statements. `signers`: programs that sign a message. `stopped_calls`:
outputs of calls that did not run. `patterns`: lists of regular expressions in YAML files.
`display`: text on one plain line.
"""
