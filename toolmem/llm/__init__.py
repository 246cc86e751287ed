"""The room of the chat models: adapters behind the `LLM` port, what they cost, and the tokenizer that counts for them.

    dashscope, openai_compatible    remote models; what they share is `remote_llm`, the way there `toolmem.transport`
    dry_run                         asks nobody: counts and prices the prompts that it is given, books them as not sent
    prefix_cache                    what a prefix cache would serve of them
    prices, ledger                  the price table; every request to a model, kept in the store
    tokenizer                       counts tokens as Qwen models do, offline

Nothing here knows what a prompt is about.
"""
