"""LangChain's own agent, with the fake chat model that it ships."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage

from frameworks.harness import Seen
from frameworks.tools_at_hand import TOOLS
from toolmem.adapters.langchain import ToolMemMiddleware

ways = ("sync", "async", "stream")
takes_notes = True
tells_error = ""

_ids = itertools.count()


class _Scripted(FakeMessagesListChatModel):
    seen: Any = None

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.seen.prompts.append(
            "\n".join(each.text for each in messages if isinstance(each, SystemMessage))
        )
        self.seen.results = [each.text for each in messages if isinstance(each, ToolMessage)]
        return super()._generate(messages, *args, **kwargs)


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    asked = [AIMessage("", tool_calls=[_call(*each) for each in step]) for step in steps]
    model = _Scripted(responses=[*asked, AIMessage("done")], seen=seen)
    middleware = [ToolMemMiddleware(memory, conversation_id=conversation, **options)]
    agent = create_agent(
        model, list(TOOLS), middleware=middleware, system_prompt="You are an agent."
    )
    given = {"messages": [{"role": "user", "content": say}]}
    try:
        if way == "stream":
            list(agent.stream(given, stream_mode="updates"))
        elif way == "async":
            asyncio.run(agent.ainvoke(given))
        else:
            agent.invoke(given)
    except Exception as error:
        seen.raised = error
    return seen


def _call(tool, args):
    return {"name": tool, "args": dict(args), "id": f"call_{next(_ids)}"}
