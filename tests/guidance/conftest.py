"""Calls of tools in conversations, and the card that is written of them."""


def call(tool, given, error="", talk="t", output="ok"):
    return {
        "tool_name": tool,
        "input": {"command": given} if isinstance(given, str) else given,
        "output": error or output,
        "success": not error,
        "conversation_id": talk,
    }


def card(memory, *calls):
    memory.add(list(calls))
    memory.summarize()
    return memory.guidance(calls[0]["tool_name"]).text
