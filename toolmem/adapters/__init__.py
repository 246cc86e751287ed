"""The memory in agents of Python frameworks: rules in the prompt, calls checked and recorded.

`base` has the conversations of every adapter. `functions` wraps plain callables, for any framework;
`langchain`, `openai_agents`, `pydantic_ai`, `claude_agent_sdk` and `agentscope` import the
framework that they are named after.
"""

from toolmem.adapters.functions import guarded

__all__ = ["guarded"]
