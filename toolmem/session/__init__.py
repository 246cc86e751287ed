"""The memory in an agent that runs its own tools: its prompt, and its calls before and after.

`agent_session` gives each turn to the model (frozen prompt, conversation, new rules) and learns
from it, `async_session` is the same as coroutines. `recorder` decorates the functions that are
tools: it checks a call before it runs and records it after. `functions` reads a function as a tool,
`messages` a turn's messages.
"""

from toolmem.session.agent_session import AgentSession
from toolmem.session.async_session import AsyncAgentSession
from toolmem.session.recorder import CallRecorder

__all__ = ["AgentSession", "AsyncAgentSession", "CallRecorder"]
