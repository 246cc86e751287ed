"""Commands of `toolmem` and requests to its server that change what holds an agent: rules, trust, hooks, settings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolmem.guard.shell_words import UNKNOWN
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern

_DELETES = split("delete forget remove purge clear reset wipe uninstall drop prune withdraw")
_CHANGES = {  # group -> its commands that change
    "rules": split("add put set edit approve reject restore review supersede import"),
    "store": split("trust"),
    "config": split("set edit unset"),
    "memory": split("put set"),
}
_LOOKS = {  # group -> its commands that change nothing
    "hook": split("run status list show check doctor print"),
    "hooks": split("run status list show check doctor print"),
    "proxy": split("run status list show check doctor print serve"),
    "guard": split("check log replay export show status list"),
    "trust": split("list show status"),
}
_PASS = split("evaluate import export serve")
_MCP_CHANGES = split("wrap unwrap install uninstall")
_HOOK = "toolmem-hook"
_RUNNERS = split("uv uvx pipx poetry pdm hatch rye conda mamba pixi")
_PYTHON = late_pattern(r"python[\d.]*|pypy[\d.]*|py")
_METHODS = late_pattern(
    r"\bmemory\.(?:forget|tool_rule_(?:put|set_status|delete|approve|reject|withdraw|restore|edit))\b"
    r"|\b(?:put_rule|delete_rule|set_rule_status|delete_tools|delete_memories|delete_workspace)\b"
    r"|[\"']?action[\"']?\s{0,4}[:=]\s{0,4}[\"']?delete"
)
_ROUTE = late_pattern(r"://[^/\s]{1,300}/(?:rpc|vector_store|delete_workspace)\b")
_UNREAD = late_pattern(r"[@<$-].*|--?")


def changes_toolmem(words: Sequence[str]) -> str | None:
    """What a command does to toolmem: deny, ask (it cannot be told), or None."""
    rest = _of_toolmem(words)
    if rest is None or "--help" in rest or "-h" in rest:
        return None
    named = [word for word in rest if not word.startswith("-")]
    group, name = [*named, "", ""][:2]
    if "$" in group + name or UNKNOWN in group + name:
        return "ask"
    if group == "run":
        return _run(rest, name)
    if group in _PASS:
        return None
    changes = (
        group in _DELETES
        or name in _DELETES
        or name in _CHANGES.get(group, ())
        or (group == "rules" and name == "capture" and "--apply" in rest)
        or (group in _LOOKS and bool(name) and name not in _LOOKS[group])
        or group in {"install", "uninstall"}
        or (group == "mcp" and _wraps(rest))
    )
    return "deny" if changes else None


def _wraps(rest: Sequence[str]) -> bool:
    """`toolmem mcp wrap`: what follows `--` is the server's own command line."""
    own = rest[: rest.index("--")] if "--" in rest else rest
    return any(word in _MCP_CHANGES for word in own[1:])


def _run(rest: Sequence[str], name: str) -> str | None:
    """`toolmem run` of an operation that changes or deletes."""
    if any(calls_for_change(word) for word in rest):
        return "deny"
    given = any(word.startswith("--request") for word in rest)
    return "ask" if given and name in {"vector_store", "rpc"} else None


def _of_toolmem(words: Sequence[str]) -> Sequence[str] | None:
    """What follows `toolmem`, `python -m toolmem`, `uv run toolmem`; None where it is another program."""
    program = words[0].rsplit("/", 1)[-1].removesuffix(".exe") if words else ""
    if program == "toolmem":
        return words[1:]
    if program == _HOOK:
        return ["hook", *words[1:]]
    if _PYTHON.fullmatch(program):
        return _of_module(words)
    if program in _RUNNERS:
        named = (at for at, word in enumerate(words[:12]) if word.rsplit("/", 1)[-1] in {"toolmem", _HOOK})
        at = next((at for at in named if words[at - 1] not in {"--from", "--with", "-p", "--spec"}), 0)
        if at and words[at - 1] in {"uninstall", "remove"}:
            return ["uninstall"]
        return [*(["hook"] if words[at].endswith(_HOOK) else []), *words[at + 1 :]] if at else None
    if program in {"pip", "pip3"} and {"uninstall", "toolmem"} <= set(words):
        return ["uninstall"]
    return None


def _of_module(words: Sequence[str]) -> Sequence[str] | None:
    """What follows `python -P -m toolmem`, or `-m toolmem.hosts`, which is `toolmem hook`."""
    for at, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*m", word):
            module, rest = [*words[at + 1 : at + 2], ""][0], words[at + 2 :]
        elif (joined := re.fullmatch(r"-[a-z]*m(toolmem[\w.]*|pip)", word)) is not None:
            module, rest = joined[1], words[at + 1 :]
        elif word.startswith("-"):
            continue
        else:
            return None
        if module == "pip":
            return _of_toolmem(["pip", *rest])
        return {"toolmem": rest, "toolmem.hosts": ["hook", *rest]}.get(module.removesuffix(".__main__"))
    return None


def calls_for_change(text: str) -> bool:
    """Does a text name a method or route that changes or deletes?"""
    return "://" not in text[:12] and _METHODS.search(text[:100_000]) is not None


def unread_request(words: Sequence[str]) -> bool:
    """Is something that stands elsewhere sent to such a route?"""
    if not any(_ROUTE.search(word) for word in words):
        return False
    sends = [words[at + 1] for at, word in enumerate(words[:-1]) if re.fullmatch(r"-d|--data.*|--json|-t|-f", word)]
    sends += [word.partition("=")[2] for word in words if re.match(r"--(?:data[\w-]*|json|post-file)=", word)]
    return any(_UNREAD.match(each) for each in sends)
