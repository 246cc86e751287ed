"""What is smolagents' alone: programs that call tools."""

from __future__ import annotations

import tools_at_hand
from harness_smolagents import _with_arguments
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, tool
from tools_at_hand import crash, send_email

from toolmem.hosts.adapters.smolagents import with_toolmem


class _Programs(Model):
    def __init__(self, *programs):
        super().__init__()
        self.left = iter(programs)

    def generate(self, messages, **_):
        program = next(self.left, 'final_answer("done")')
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{program}\n</code>")


def test_a_program_is_stopped_where_it_calls_what_a_rule_forbids(mem):
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    tools_at_hand.ran.clear()
    program = (
        'send_email("bob@example.com", text="hi")\nsend_email("sarah@example.com", "hi")\nsend_email("al@example.com")'
    )
    given = [tool(_with_arguments(each)) for each in (send_email, crash)]
    agent = with_toolmem(CodeAgent(tools=given, model=_Programs(program), verbosity_level=0), mem, conversation="c1")
    agent.run("write")
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert "never email Sarah" in str(agent.memory.steps[1].error)
    (call,) = mem.calls(["send_email"])
    assert (call.input, call.success) == ({"to": "bob@example.com", "text": "hi"}, True)


def test_a_program_catches_what_its_tool_raises_and_it_is_kept(mem):
    program = 'try:\n    crash("gone.txt")\nexcept Exception as error:\n    print("caught")\nfinal_answer("over")'
    given = [tool(_with_arguments(crash))]
    agent = with_toolmem(CodeAgent(tools=given, model=_Programs(program), verbosity_level=0), mem)
    assert agent.run("read") == "over"
    (call,) = mem.calls(["crash"])
    assert (call.success, call.output) == (False, "FileNotFoundError: no such file: gone.txt")
