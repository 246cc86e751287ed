"""What `pip install toolmem` leaves out: the extras, what each of them brings, and how a missing one is told."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from toolmem.errors import ConfigError

# The packages of each extra, by the names under which they are imported.
EXTRAS = {
    "dashscope": ("dashscope",),
    "elasticsearch": ("elasticsearch",),
    "research": ("pandas", "matplotlib", "jupytext", "nbclient", "nbconvert", "ipykernel"),
    "serve": ("fastapi", "fastapi_offline", "uvicorn", "mcp"),
}

# Agent frameworks that `toolmem.hosts.adapters` stands in: the extra -> the package that it brings, as it is imported.
# They do not all install beside each other, so that none of them is part of `all`.
FRAMEWORKS = {
    "langchain": ("langchain",),
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
    "fastmcp": ("fastmcp",),
    "google-adk": ("google.adk",),
    "strands": ("strands",),
    "smolagents": ("smolagents",),
    "llama-index": ("llama_index.core",),
    "claude-agent-sdk": ("claude_agent_sdk",),
    "agentscope": ("agentscope",),
}


def missing(extra: str) -> list[str]:
    """The packages of this extra that are not installed; nothing is imported to find out."""
    return [name for name in {**EXTRAS, **FRAMEWORKS}[extra] if not _installed(name)]


def lacks(what: str, extra: str) -> str:
    """A sentence where the extra is not installed, "" where it is: `what` needs the packages, and how to get them."""
    absent = missing(extra)
    if not absent:
        return ""
    return f"{what} needs the package{'s' * (len(absent) > 1)} {', '.join(absent)}: pip install 'toolmem[{extra}]'"


def need(what: str, extra: str) -> None:
    """Raises ConfigError where the extra is not installed."""
    if problem := lacks(what, extra):
        raise ConfigError(problem)


def need_pandas() -> None:
    """Raises ConfigError where DataFrames cannot be made."""
    if not _installed("pandas"):
        raise ConfigError("a DataFrame needs the package pandas: pip install 'toolmem[research]'")


@cache
def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # an import hook forbids it
        return False
