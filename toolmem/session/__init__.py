"""Both halves of tool memory in an agent: rules and guidance in the prompt, what happened back into the memory.

`buffer`    the conversation, and the compressor that keeps it within its tokens
`turns`     one shape of a turn, from chat messages or from calls
`recorder`  a decorator that records the calls of plain Python functions
"""

from toolmem.session.agent_session import AgentSession
from toolmem.session.recorder import CallRecorder
from toolmem.session.turns import keep_newest

__all__ = ["AgentSession", "CallRecorder", "keep_newest"]
