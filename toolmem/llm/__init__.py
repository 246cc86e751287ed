"""Chat models and embedders, and the one place where toolmem waits for them.

`models` and `embedders` open what a configuration names, `pool` sends requests, `client` makes each
of them within its `budget` and keeps what it cost (`usage`), `openai` and `dashscope` speak the
protocols, `failures` says alike what went wrong. `encoder` and `hashing` embed without a network.
`prompts` holds the templates, `tokens` estimates their length.
"""
