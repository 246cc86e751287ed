"""Every key of the configuration, from the settings that check it."""

from __future__ import annotations

import typing
from typing import Any

from pydantic import BaseModel

from page_writers.markdown import GENERATED, comments, default_text, field_type, page, summary_line, table

_HEAD = """\
Every key that a configuration may hold. Any other key, at any depth, is refused with the nearest name. `<name>` stands
for a name of your choice; `default` is the one that ops use where they name none.
[Configure ops](../how-to/configure-ops.md) says where values come from and which one wins.
"""
_IGNORED = """\
Keys of ReMe's files that have no meaning here are accepted and named once in the log: {names}.
"""

_VARIABLES = """\
What stands in for a value that neither a file nor an override gives; the first variable that is set counts. None of
them makes toolmem ask a model: only a `backend` does. For openai_compatible, an address on this machine needs no key;
`OPENAI_API_KEY` alone leads to OpenAI; there, and at the address of `OPENAI_BASE_URL`, it comes first, and no key of
DashScope is sent.

```console
$ export OPENAI_BASE_URL=http://127.0.0.1:8080/v1
$ toolmem evaluate --limit 12 llm.default.backend=openai_compatible llm.default.model_name=small
```"""

# What the settings themselves do not say in a comment.
_MEANINGS = {
    "backend": "what `toolmem` with nothing but overrides starts: the service, MCP, or one flow",
    "language": "of prompts and texts: empty for English, or `zh`",
    "disabled_flows": "left out",
    "dump_dir": "folder of dumps; a request's `path` lies inside it",
    "op_modules": "modules of yours, imported when the configuration is read",
    "flow.<name>.flow_content": "ops joined by `>>` and `|`",
    "flow.<name>.description": "shown to clients and MCP hosts",
    "flow.<name>.input_schema.<name>.type": "string, array, integer, number, boolean, object, or a list of them",
    "flow.<name>.input_schema.<name>.description": "what the argument means",
    "flow.<name>.input_schema.<name>.required": "a request without it is refused",
    "flow.<name>.input_schema.<name>.enum": "the only values allowed",
    "op.<name>.llm": "which model of `llm`; empty: `default`",
    "op.<name>.embedding_model": "which one of `embedding_model`",
    "op.<name>.vector_store": "which one of `vector_store`",
    "op.<name>.language": "of its prompts",
    "op.<name>.prompt_path": "a file of your own prompts (YAML)",
    "op.<name>.max_retries": "of its requests to a model, over the model's own",
    "op.<name>.raise_exception": "false: a failure is noted in the response and the flow goes on",
    "llm.<name>.backend": "offline, dry_run, dashscope or openai_compatible",
    "llm.<name>.model_name": "as the service calls it",
    "llm.<name>.params.base_url": "the service's address; empty: the backend's own",
    "llm.<name>.params.api_key": "better in the environment",
    "llm.<name>.params.timeout": "seconds for one request",
    "llm.<name>.params.temperature": "0: as alike as the model can",
    "llm.<name>.params.top_p": "nucleus sampling",
    "llm.<name>.params.seed": "for services that have one",
    "embedding_model.<name>.backend": "multilingual, hashing, fastembed, dashscope or openai_compatible",
    "embedding_model.<name>.model_name": "as the service calls it",
    "embedding_model.<name>.params.base_url": "the service's address",
    "embedding_model.<name>.params.api_key": "better in the environment",
    "embedding_model.<name>.params.timeout": "seconds for one request",
    "embedding_model.<name>.params.max_concurrency": "requests in flight",
    "embedding_model.<name>.params.max_retries": "of a request that may pass at another attempt",
    "vector_store.<name>.backend": "sqlite or elasticsearch",
    "vector_store.<name>.embedding_model": "which one of `embedding_model` makes its vectors",
    "vector_store.<name>.params.synchronous": "sqlite: FULL survives a power cut, NORMAL is faster",
    "vector_store.<name>.params.busy_timeout": "sqlite: seconds to wait for another writer",
    "vector_store.<name>.params.hosts": "elasticsearch: an address, or a list of them",
    "vector_store.<name>.params.index_prefix": "elasticsearch: what the names of its indices begin with",
    "vector_store.<name>.params.api_key": "elasticsearch: instead of a password",
    "vector_store.<name>.params.verify_certs": "elasticsearch: false only for a test cluster",
    "vector_store.<name>.params.timeout": "elasticsearch: seconds for one request",
    "vector_store.<name>.params.max_retries": "elasticsearch: of a request that may pass at another attempt",
    "vector_store.<name>.params.vector_index": "elasticsearch: exact search, or an approximate index",
    "vector_store.<name>.params.number_of_shards": "elasticsearch: of new indices",
    "vector_store.<name>.params.number_of_replicas": "elasticsearch: of new indices",
    "http.host": "without a token only 127.0.0.1",
    "http.port": "0: any free one",
    "http.timeout_keep_alive": "seconds that an idle connection is kept",
    "http.max_body_bytes": "a longer request is refused",
    "mcp.transport": "how an MCP host reaches it",
    "mcp.host": "without a token only 127.0.0.1",
    "mcp.port": "for every transport but stdio",
    "cmd.flow": "the flow that is run",
    "cmd.params": "its request",
    "auth.token_file": "a file that holds the token",
    "rules.max_in_prompt": "rules pinned in a prompt; critical ones always are",
    "rules.max_characters": "of the pinned block; critical rules always fit",
    "rules.capture": "false: nothing that is said becomes a rule; model: a model notes what each message demands",
    "session.judging": "while the session runs, or when it closes",
    "guidance.max_tokens": "of the card of one tool",
    "guidance.max_tokens_prompt": "of the guidance of all tools in a prompt; first where most failures can be avoided",
    "session.guidance_tokens": "another name of `guidance.max_tokens_prompt`, used where it is set",
    "budget.max_tokens": "prompt and completion together",
    "budget.max_cost": "in the currency of the prices",
    "prices.<name>.input": "a thousand prompt tokens",
    "prices.<name>.output": "a thousand completion tokens",
    "prices.<name>.batch_input": "the same in a batch",
    "prices.<name>.batch_output": "the same in a batch",
    "prices.<name>.currency": "of these prices",
    "prices.<name>.source": "where it was read",
}


def configuration() -> str:
    from toolmem.config import reme_compat
    from toolmem.config.settings import Settings

    parts = [_HEAD + GENERATED, "## Top level", _table("", Settings, nested=False)]
    for name, field in Settings.model_fields.items():
        section = _section(field.annotation)
        if section is None:
            continue
        cls, named = section
        parts += [f"## {name}", summary_line(cls) if cls.__doc__ and cls.__doc__ != BaseModel.__doc__ else ""]
        parts.append(_table(f"{name}.<name>." if named else f"{name}.", cls, nested=True))
    parts += ["## Values from the environment", _VARIABLES, _variables()]
    parts += ["## Values without a file of yours", "As `toolmem config show` prints them; flows and prices left out."]
    parts.append(_effective())
    parts.append(_IGNORED.format(names=", ".join(f"`{name}`" for name in reme_compat.IGNORED)))
    return page("Configuration keys", *(part for part in parts if part))


def _section(annotation: Any) -> tuple[type[BaseModel], bool] | None:
    """The section's class, and whether there may be several of it by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    if typing.get_origin(annotation) is dict:
        inner = typing.get_args(annotation)[1]
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner, True
    return None


def _table(prefix: str, cls: type[BaseModel], *, nested: bool) -> str:
    return table(["key", "type", "default", "meaning"], _rows(prefix, cls, nested))


def _rows(prefix: str, cls: type[BaseModel], nested: bool) -> list[tuple[str, str, str, str]]:
    said = comments(cls)
    rows: list[tuple[str, str, str, str]] = []
    for name, field in cls.model_fields.items():
        section = _section(field.annotation)
        if section is None:
            rows.append(
                (f"`{prefix}{name}`", field_type(field), default_text(field), _meaning(prefix + name, said.get(name)))
            )
        elif nested:
            inner, named = section
            rows += _rows(f"{prefix}{name}.{'<name>.' if named else ''}", inner, nested)
    return rows


def _meaning(key: str, comment: str | None) -> str:
    return (comment or _MEANINGS.get(key, "")).replace("None:", "null:")


def _variables() -> str:
    from toolmem.config.environment import FALLBACKS

    rows = [
        (f"`{section}.<name>.params.{param}`", f"`{backend}`", ", ".join(f"`{name}`" for name in names))
        for (section, backend, param), names in FALLBACKS.items()
    ]
    return table(["key", "of the backend", "variables"], rows)


def _effective() -> str:
    from toolmem.app import ToolMemApp
    from toolmem.flow.effective import effective

    shown = effective(ToolMemApp().configured)
    rows = [(f"`{name}`", f"`{value}`") for name, value, _ in shown if not name.startswith(("flow.", "prices"))]
    return table(["name", "value"], rows)
