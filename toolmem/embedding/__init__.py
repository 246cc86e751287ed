"""Texts into vectors: the adapters of `toolmem.ports.Embedder`.

`hashing` is the offline default: character n-grams, no model, no network, the same vectors on every machine.
`dashscope` and `openai_compatible` ask remote models; what they share is `remote_embedder`, the way there
`toolmem.transport`.
"""
