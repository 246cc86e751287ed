"""Chat models and embedders, and the one place where toolmem waits for them.

`models` and `embedders` open what a configuration names, `pool` sends requests, `client` makes each
of them within its `budget` and records its cost (`usage`), `openai` and `dashscope` speak the
protocols, `failures` classifies what went wrong. `encoder` and `hashing` embed without a network.
`prompts` holds the templates, `tokens` estimates their length.
"""
