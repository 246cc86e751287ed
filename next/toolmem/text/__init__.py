"""Reading text that nobody vouches for. Every reader takes time linear in what it reads.

`forms`: how texts are compared. `patterns`: regular expressions in YAML files. `masking`: secrets;
`secret_names` and `secret_spans` find them. `display`: text on one plain line.
"""
