"""Chat models and embedders, and the one place where toolmem waits for them.

`models` and `embedders` open what a configuration names. `pool` sends requests, several at a time;
`client` makes each within the `budget` and records its cost (`usage`). `openai` and `dashscope`
speak the protocols, and `failures` classifies errors. `encoder` and `hashing` embed without a
network. `prompts` reads templates, `tokens` estimates the length of texts.
"""
