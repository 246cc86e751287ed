"""smolagents: an agent whose tools are held and kept.

    agent = with_toolmem(ToolCallingAgent(tools=[...], model=model), mem, conversation="c1")

A CodeAgent's program is stopped by an exception where it calls what a rule forbids; what its own Python does is not
seen. Calls of managed agents are those of their own `with_toolmem`.
"""

from __future__ import annotations

import copy
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.errors import CallDenied
from toolmem.hosts.adapters.common import AgentConversation, AgentMemory, described

need("toolmem.hosts.adapters.smolagents", "smolagents")

from smolagents import CodeAgent, MultiStepAgent, Tool

_ANSWERS = "final_answer"  # how an agent ends


def with_toolmem(
    agent: MultiStepAgent, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any
) -> MultiStepAgent:
    """The same agent: its tools are held and kept, and its system prompt ends with rules and guidance.

    Further arguments as of `AgentMemory`.
    """
    memory_of_agent = AgentMemory(memory, conversation, **options)
    talk = memory_of_agent.of()
    raises = isinstance(agent, CodeAgent)
    agent.tools = {name: tool if name == _ANSWERS else _held(tool, talk, raises) for name, tool in agent.tools.items()}
    agent.tools |= {tool["name"]: _SmolDemandTool(tool, talk) for tool in memory_of_agent.own_tools}
    of_framework = agent.initialize_system_prompt

    def initialize_system_prompt() -> str:
        """At the start of each run."""
        tools = described(agent.tools.values(), _schema)
        section = talk.prompt_now(tools, said=getattr(agent, "task", None) or "", at=len(agent.memory.steps))
        return "\n\n".join(part for part in (of_framework(), section) if part)

    agent.initialize_system_prompt = initialize_system_prompt
    return agent


class _SmolDemandTool(Tool):
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: dict[str, Any], talk: AgentConversation) -> None:
        schema = tool["inputSchema"]
        self.name, self.description = tool["name"], tool["description"]
        self.inputs = {
            name: {
                "type": each.get("type", "any"),
                "description": each.get("description", ""),
                "nullable": name not in schema["required"],
            }
            for name, each in schema["properties"].items()
        }
        self._talk = talk
        super().__init__()

    def forward(self, **given: Any) -> str:
        return self._talk.answer_now(self.name, given)


def _held(tool: Tool, talk: AgentConversation, raises: bool) -> Tool:
    held = copy.copy(tool)

    def forward(*args: Any, **kwargs: Any) -> Any:
        call = talk.begin_now(tool.name, _given(tool, args, kwargs))
        if call.stops:
            if raises:
                raise CallDenied(call.decision)
            return call.reason
        try:
            result = tool.forward(*args, **kwargs)
        except BaseException as error:
            talk.end_now(call, error=error)
            raise
        talk.end_now(call, result)
        return call.advised(result) if isinstance(result, str) and not raises else result

    held.forward = forward
    return held


def _given(tool: Tool, args: Any, kwargs: Any) -> dict[str, Any]:
    names = [*tool.inputs, *map(str, range(len(tool.inputs), len(args)))]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _schema(tool: Tool) -> dict[str, Any]:
    schema = {"type": "object", "properties": tool.inputs}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}
