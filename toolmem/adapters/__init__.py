"""The memory in agents of Python frameworks: rules and guidance in the prompt, calls held and kept.

`base` is what every adapter speaks to. `functions` wraps plain callables, for any framework;
`langchain`, `openai_agents`, `pydantic_ai`, `claude_agent_sdk` and `agentscope` import the
framework that they are named after.
"""

from toolmem.adapters.functions import guarded

__all__ = ["guarded"]
