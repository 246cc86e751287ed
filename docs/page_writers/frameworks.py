"""docs/how-to/hosts/frameworks.md: three lines for each agent framework, and what its real package last answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_writers.markdown import GENERATED, table

REPORT = Path(__file__).resolve().parents[2] / "tests" / "hosts_live" / "adapters" / "report.jsonl"

_HEAD = """# Agent frameworks in Python

Three lines put a memory into an agent of these frameworks. Each is an extra of toolmem, installed from its checkout
(`.` is that folder: no package index has toolmem). From then on

* each call is held against the user's rules, and against what failed before in its conversation: where it is stopped,
  the model reads why, in the form in which the framework tells a tool's error;
* a rule that asks for consent asks by `on_ask(decision) -> bool`, plain or async; without it such a call does not run,
  and the model is told to ask the user;
* a call that failed is stopped when the agent repeats it unchanged, and runs when it is sent once more; set
  `guard.repeats` for another mode, and `TOOLMEM_GUARD=off` to switch the guard off;
* each call is kept once, with the tool's result or the framework's error and how long it took; one that was stopped
  stands in the log of decisions as not run. Calls are kept unjudged: `mem.retry_evaluations()` judges them;
* where the framework allows it, rules and guidance stand in the system prompt, and what the user says there is read for
  demands. Give `capture=False` to an agent that only other agents speak to;
* there the agent's model is offered two tools beside its own, `note_demand` and `lift_demand`: it writes down what the
  user demands, the note is checked against the user's words and its own examples, and holds from the next call on
  ([Bring your own agent](../bring-your-own-agent.md)). They cost some 1,000 tokens of each request;
  `demand_tools=False` takes them away. FastMCP, which hears no user, and the Claude Agent SDK, whose
  adapter is hooks alone, offer none.

The memory is a `ToolMem`, which works from every thread and event loop, or an `AsyncToolMem`, which over Elasticsearch
belongs to one event loop; rules hold in every framework on one store. `conversation` names the
conversation that repeats are known in: without it, it is the framework's own session, or one that is made. Trouble of
the memory is logged and stops no call (`guard.on_error: closed` stops them all).
"""

_TRIED = """## Last tried

`make test-hosts` runs one contract over the real packages, each in a virtual environment of its own, offline, with a
model that follows a script: allow, deny, ask, advise, errors, trouble of the memory, async, calls at once, streaming,
tools without parameters, what the user says and the model notes of it, and rules of one framework in the others on one
store.
"""

# The extra, the title, the lines, and what the framework does not allow.
FRAMEWORKS: tuple[tuple[str, str, str, str], ...] = (
    (
        "langchain",
        "LangChain and LangGraph",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.langchain import ToolMemMiddleware

agent = create_agent(model, tools, middleware=[ToolMemMiddleware(ToolMem("memory.db"), conversation="c1")])""",
        """Without `conversation` it is the run's `thread_id`. An exception of a tool ends the run, as LangChain has
it: `ToolErrorMiddleware` tells it to the model. A call that a graph's interrupt ends is kept when it has
run.""",
    ),
    (
        "openai-agents",
        "OpenAI Agents SDK",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.openai_agents import with_toolmem

agent = with_toolmem(Agent(name="helper", tools=[...]), ToolMem("memory.db"), conversation="c1")""",
        """Function tools are held. Tools of MCP servers and those that OpenAI runs are not seen. An agent that others
hand over to is given its own `with_toolmem` with the same `conversation`.""",
    ),
    (
        "pydantic-ai",
        "Pydantic AI",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.pydantic_ai import ToolMemCapability

agent = Agent(model, tools=[...], capabilities=[ToolMemCapability(ToolMem("memory.db"), conversation="c1")])""",
        """Without `conversation` it is the run's `conversation_id`. The model reads why a call was stopped as a
failed tool (`ToolFailed`). A call that is deferred or waits for an approval is kept when it has run.""",
    ),
    (
        "fastmcp",
        "FastMCP",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.fastmcp import ToolMemServerMiddleware

server.add_middleware(ToolMemServerMiddleware(ToolMem("memory.db"), conversation="c1"))""",
        """A server sees neither the prompt nor what the user says: rules come from elsewhere on the same store.
Without `conversation` it is the client's session; clients of the protocol of 2026-07-28 have none, and
each of their calls is a conversation of its own. A call that Claude Code also tells by a hook is one call.""",
    ),
    (
        "google-adk",
        "Google ADK",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.google_adk import ToolMemPlugin

plugin = ToolMemPlugin(ToolMem("memory.db"))
runner = Runner(app_name="app", agent=agent, session_service=sessions, plugins=[plugin])""",
        """Without `conversation` it is the session's id. The calls of every agent that the runner runs are held. A
call that is stopped answers `{"error": reason}`. An exception of a tool ends the run, as ADK has it, and
is kept.""",
    ),
    (
        "strands",
        "Strands Agents",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.strands import ToolMemStrands

agent = Agent(model=model, tools=[...], plugins=[ToolMemStrands(ToolMem("memory.db"), conversation="c1")])""",
        """Without `conversation` it is the agent's `session_id`.""",
    ),
    (
        "smolagents",
        "smolagents",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.smolagents import with_toolmem

agent = with_toolmem(ToolCallingAgent(tools=[...], model=model), ToolMem("memory.db"), conversation="c1")""",
        """It changes the agent that it is given. There is nothing async here. The program of a `CodeAgent` is stopped
by an exception where it calls what a rule forbids, and advice is in `mem.decisions()` alone; what its own
Python does is not seen. A managed agent is given its own `with_toolmem`.""",
    ),
    (
        "llama-index",
        "LlamaIndex",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.llama_index import with_toolmem

agent = with_toolmem(FunctionAgent(tools=[...], llm=llm), ToolMem("memory.db"), conversation="c1")""",
        """It changes the agent that it is given. An `AgentWorkflow` runs the tools of its agents, and each agent asks
its own model: give `with_toolmem` the workflow and its agents, with the same `conversation`. There is
nothing synchronous here. A tool that waits for an event is kept when it has run.""",
    ),
    (
        "claude-agent-sdk",
        "Claude Agent SDK",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.claude_agent_sdk import toolmem_hooks

options = ClaudeAgentOptions(hooks=toolmem_hooks(ToolMem("memory.db")))""",
        """Without `conversation` it is the session. Every tool is held, those of MCP servers under the server's own
name for them. Rules and guidance stand beside the user's message, not in the system prompt; they are told
again when they have changed, or after a compaction. Where the program is installed with `toolmem hook
install` too, a call is kept once in a store that both use.""",
    ),
    (
        "agentscope",
        "AgentScope",
        """from toolmem import ToolMem
from toolmem.hosts.adapters.agentscope import ToolMemAgentScope

middleware = ToolMemAgentScope(ToolMem("memory.db"), conversation="c1")
agent = Agent(name="helper", system_prompt="...", model=model, middlewares=[middleware])""",
        """Without `conversation` it is the session of the agent's state. A call that is stopped is denied before
AgentScope asks the user; one that AgentScope asks about is kept when it has run. There is nothing
synchronous here.""",
    ),
)


def frameworks() -> str:
    """The page."""
    told = {each["framework"]: each for each in _report()}
    parts = [_HEAD, f"{GENERATED}\n"]
    for extra, title, lines, notes in FRAMEWORKS:
        parts.append(f"## {title}\n\n`pip install '.[{extra}]'`\n\n```python\n{lines}\n```\n\n{notes}\n")
    parts.append(_TRIED)
    head = ["framework", "versions", "date", "Python", "passed", "failed", "skipped"]
    parts.append(table(head, [_row(title, told.get(extra)) for extra, title, *_ in FRAMEWORKS]) + "\n")
    return "\n".join(parts)


def _row(title: str, result: dict[str, Any] | None) -> list[str]:
    if result is None:
        return [title, "", "", "", "", "", "not tried yet"]
    skipped = "; ".join(f"{count}: {reason}" for reason, count in result["skipped"].items())
    numbers = [str(result["passed"]), str(len(result["failed"]))]
    versions = ", ".join(each.replace("==", " ") for each in result["versions"])
    return [title, versions, result["date"], result["python"], *numbers, skipped]


def _report() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REPORT.read_text(encoding="utf-8").splitlines() if line]
