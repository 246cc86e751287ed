"""The room of the chat models: adapters behind the `LLM` port, and the tokenizer that counts what they would read.

    dry_run      asks nobody: counts and prices the prompts that it is given, and books them as not sent
    tokenizer    counts tokens as Qwen models do, offline

Nothing here knows what a prompt is about.
"""
