"""What toolmem's installation leaves out: the extras, what each of them brings, and how a missing one is told."""

from __future__ import annotations

import shlex
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

# Too large for `all` (fastembed and what it needs: 226 MB).
LARGE = {"fastembed": ("fastembed",)}

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
    return [name for name in {**EXTRAS, **LARGE, **FRAMEWORKS}[extra] if not is_installed(name)]


def lacks(what: str, extra: str) -> str:
    """A sentence where the extra is not installed, "" where it is: `what` needs the packages, and how to get them."""
    absent = missing(extra)
    if not absent:
        return ""
    return f"{what} needs the package{'s' * (len(absent) > 1)} {', '.join(absent)}: {install_line(extra)}"


def need(what: str, extra: str) -> None:
    """Raises ConfigError where the extra is not installed."""
    if problem := lacks(what, extra):
        raise ConfigError(problem)


def need_pandas() -> None:
    """Raises ConfigError where DataFrames cannot be made."""
    if not is_installed("pandas"):
        raise ConfigError(f"a DataFrame needs the package pandas: {install_line('research')}")


def install_line(extra: str) -> str:
    """What installs this extra from where toolmem itself came from.

    No package index has toolmem: whoever likes could give another package that name.
    """
    source, editable = _source()
    if source:
        return f"pip install {'-e ' * editable}{shlex.quote(f'{source}[{extra}]')}"
    return f"pip install '.[{extra}]' in a checkout of toolmem"


def _source() -> tuple[str, bool]:
    """The folder or wheel that pip says it installed toolmem from, and whether as editable; "" where it is gone."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        told = json.loads(distribution("toolmem").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "", False
    url = urlsplit(str(told.get("url", "")))
    path = url2pathname(url.path) if url.scheme == "file" else ""
    editable = bool(told.get("dir_info", {}).get("editable"))
    return (path, editable) if path and Path(path).exists() else ("", False)


@cache
def is_installed(name: str) -> bool:
    """Whether the package of this import name is there; nothing is imported to find out."""
    try:
        return find_spec(name) is not None
    except ImportError:  # an import hook forbids it
        return False
