"""smolagents' own tool-calling agent, with a model that follows a script."""

from __future__ import annotations

import itertools

from harness import Seen
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from tools_at_hand import crash, delete_file, now, send_email, wait

from toolmem.hosts.adapters.smolagents import with_toolmem

name = "smolagents"
ways = ("sync", "stream")
shows_prompt = hears_user = True
takes_notes = True
tells_error = "no such file: gone.txt"

_ids = itertools.count()
_ARGUMENTS = {
    "send_email": {"to": "whom", "text": "what"},
    "delete_file": {"path": "which"},
    "crash": {"path": "which"},
    "now": {},
    "wait": {"name": "for whom"},
}


class _Scripted(Model):
    def __init__(self, seen, steps):
        super().__init__()
        self.seen, self.left = seen, iter(steps)

    def generate(self, messages, **_):
        self.seen.prompts.append(_text(messages[0]))
        asked = next(self.left, [("final_answer", {"answer": "done"})])
        calls = [
            ChatMessageToolCall(
                id=f"call_{next(_ids):05}",
                type="function",
                function=ChatMessageToolCallFunction(name=named, arguments=dict(args)),
            )
            for named, args in asked
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    tools = [tool(_with_arguments(each)) for each in (send_email, delete_file, crash, now, wait)]
    agent = ToolCallingAgent(
        tools=tools, model=_Scripted(seen, steps), instructions="You are an agent.", verbosity_level=0, max_steps=20
    )
    agent = with_toolmem(agent, memory, conversation=conversation, **options)
    try:
        list(agent.run(say, stream=True)) if way == "stream" else agent.run(say)
    except Exception as error:
        seen.raised = error
    for step in agent.memory.steps[1:-1]:
        told = (step.observations or str(step.error or "")).strip()
        seen.results += told.splitlines() if len(step.tool_calls or ()) > 1 else [told]
    return seen


def _with_arguments(function):
    """smolagents reads what the docstring says of each argument."""
    told = _ARGUMENTS[function.__name__]
    if "Args:" not in function.__doc__ and told:
        lines = [f"    {argument}: {text}" for argument, text in told.items()]
        function.__doc__ = "\n".join([function.__doc__, "", "Args:", *lines])
    return function


def _text(message):
    parts = message.content if isinstance(message.content, list) else [{"text": message.content}]
    return "\n".join(part.get("text", "") for part in parts)
