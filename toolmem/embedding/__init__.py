"""Texts into vectors: the adapters of `toolmem.ports.Embedder`.

`hashing` is the offline default: character n-grams, no model, no network, the same vectors on every machine.
"""
