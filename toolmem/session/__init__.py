"""Tool memory in an agent: rules and guidance go into its prompt, what happened goes back into the memory.

`chat_messages`  the calls of a turn's messages, and the compressor that keeps a conversation within its tokens
`recorder`       a decorator that holds the calls of plain Python functions against the rules, and records them
`guarded_calls`  what holds them: the guard of the memory, asked from whatever thread or loop a tool runs on
"""

from toolmem.session.agent_session import AgentSession
from toolmem.session.chat_messages import keep_newest
from toolmem.session.recorder import CallRecorder, DecidedCall

__all__ = ["AgentSession", "CallRecorder", "DecidedCall", "keep_newest"]
