"""The memory in agents of Python frameworks: rules in the prompt, calls checked and recorded.

`base` keeps the conversations of every adapter. `functions` wraps plain functions, for any
framework. `langchain`, `openai_agents`, `pydantic_ai`, `claude_agent_sdk` and `agentscope` each
import the framework that they are named after.
"""

from toolmem.adapters.functions import guarded

__all__ = ["guarded"]
