"""Tool memory in an agent: rules and guidance go into its prompt, what happened goes back into the memory.

`chat_messages`  the calls of a turn's messages, and the compressor that keeps a conversation within its tokens
`recorder`       a decorator that records the calls of plain Python functions
"""

from toolmem.session.agent_session import AgentSession
from toolmem.session.chat_messages import keep_newest
from toolmem.session.recorder import CallRecorder

__all__ = ["AgentSession", "CallRecorder", "keep_newest"]
