"""What is AgentScope's alone: summaries in the user's place, its own permissions."""

from __future__ import annotations

import asyncio

import tools_at_hand
from agentscope.agent import Agent
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, Toolkit
from harness import Seen
from harness_agentscope import _said, _Scripted
from tools_at_hand import send_email

from toolmem.hosts.adapters.agentscope import ToolMemAgentScope

SARAH = [("send_email", {"to": "sarah@example.com", "text": "hi"})]


def _agent(mem, seen, behavior, *steps):
    tool = FunctionTool(send_email, permission=PermissionDecision(behavior, "in this test"))
    tools_at_hand.ran.clear()
    return Agent(
        name="helper",
        system_prompt="You are an agent.",
        model=_Scripted(seen, steps, False),
        toolkit=Toolkit(tools=[tool]),
        middlewares=[ToolMemAgentScope(mem)],
    )


def test_a_summary_that_stands_in_the_users_place_demands_nothing(mem):
    agent = _agent(mem, Seen(), PermissionBehavior.ALLOW, SARAH)
    agent.state.summary = "Never email Sarah."
    asyncio.run(agent.reply(_said("go on")))
    assert tools_at_hand.ran == [("send_email", "sarah@example.com")]
    assert mem.rules.list("send_email") == mem.rules.list("@mail") == []


def test_a_call_that_agentscope_asks_its_user_about_is_kept_only_when_it_runs(mem):
    asyncio.run(_agent(mem, Seen(), PermissionBehavior.ASK, SARAH).reply(_said("go on")))
    assert tools_at_hand.ran == []
    assert list(mem.calls(["send_email"])) == []


def test_a_call_that_a_rule_forbids_is_denied_before_agentscope_asks(mem):
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    seen = Seen()
    asyncio.run(_agent(mem, seen, PermissionBehavior.ASK, SARAH).reply(_said("go on")))
    assert "never email Sarah" in seen.results[0]
