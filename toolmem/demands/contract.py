"""What a model is told of noting demands: the whole text, and the shorter ones for MCP and hooks."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def contract(call: str = "call `note_demand`") -> str:
    """The whole contract, some 770 tokens. `call`: how the model notes a demand."""
    return _text("contract.md").replace("@CALL@", call)


def listed_contract() -> str:
    """For MCP's list of tools, some 550 tokens: every field and test of the whole contract, with fewer words."""
    return _text("listed.md")


def short_contract(command: str, shell: str) -> str:
    """For a model that notes by a command: some 280 tokens of Qwen. `shell`: the agent's tool that runs commands."""
    return _text("short.md").replace("@COMMAND@", command).replace("@SHELL@", shell)


def _text(name: str) -> str:
    return files("toolmem.demands").joinpath(name).read_text(encoding="utf-8").strip()
