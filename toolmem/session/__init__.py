"""For an agent that runs its own tools: make its prompt, check its calls, and record them.

`agent_session` makes the messages of each turn (frozen prompt, conversation, new rules) and learns
from the turn; `async_session` has the same methods as coroutines. `recorder` decorates functions
that are tools: it checks a call before it runs and records it afterwards. `functions` reads a
function as a tool, `messages` the messages of a turn.
"""

from toolmem.session.agent_session import AgentSession
from toolmem.session.async_session import AsyncAgentSession
from toolmem.session.recorder import CallRecorder

__all__ = ["AgentSession", "AsyncAgentSession", "CallRecorder"]
