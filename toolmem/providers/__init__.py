"""Remote models, and what stands in for them: the adapters behind `toolmem.protocols.LLM` and `Embedder`.

    dashscope, openai_compatible    chat and embedding models, each with the protocol that it is asked by
    remote_llm, remote_embedder     what the adapters share; `remote_model` what these two share
    packaged_encoder                the default embedder: a multilingual sentence encoder that comes along
    onnx_encoder, hashing           an ONNX model beside it, through fastembed; character n-grams, no model at all
    dry_run                         asks nobody: counts and prices prompts, and books them as not sent
    prices, usage_log, tokenizer    what requests cost; every request, kept in the store; tokens, counted offline

A request meets, in this order: `remote_model` (checked before anything is sent), `request_queue` (retries, pacing, the
cap in flight, the budget, booking), `pacing`, `slots` and `budget`, the protocol, which sends it through the loop's
session of `http_sessions` and notes in an `exchange` what happened on the wire; and where it fails, `model_failures`.
Nothing here knows what a prompt is about.
"""
