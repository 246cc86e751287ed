"""The ops and the flows of the default configuration."""

from __future__ import annotations

from typing import Any

from page_writers.markdown import GENERATED, code_names, comments, default_text, docstring, field_type, page, table

_HEAD = """\
An op is one step of a flow. It says what it reads (from the request, or from what an earlier op left) and what it
leaves, so that a flow which cannot work is refused before it starts. Every param can be set in YAML or by an override:
`op.<name in YAML>.params.<param>`. [Configure ops](../how-to/configure-ops.md) shows how.
"""


def ops() -> str:
    import toolmem.ops

    parts = [_HEAD + GENERATED]
    for name in toolmem.ops.__all__:
        op = getattr(toolmem.ops, name)
        facts = [
            f"* in YAML: `{op.name}`",
            f"* reads: {code_names(op.reads)}" + (f"; where given: {code_names(op.optional)}" if op.optional else ""),
            f"* leaves: {code_names(op.leaves)}",
            f"* asks a model: {'yes' if op.asks_model else 'no'}",
        ]
        parts += [f"## {name}", docstring(op), "\n".join(facts)]
        if op.Params.model_fields:
            parts.append(params_table(op.Params))
    parts += ["## Settings of every op", _settings()]
    return page("Ops", *parts)


def params_table(params: Any) -> str:
    said = comments(params)
    rows = [
        (f"`{name}`", field_type(field), default_text(field), said.get(name, ""))
        for name, field in params.model_fields.items()
    ]
    return table(["param", "type", "default", "meaning"], rows)


def _settings() -> str:
    from toolmem.config.settings import OpEntry

    said = comments(OpEntry)
    rows = [
        (f"`op.<name>.{name}`", field_type(field), default_text(field), said.get(name, ""))
        for name, field in OpEntry.model_fields.items()
    ]
    return "Beside its params each op takes these.\n\n" + table(["key", "type", "default", "meaning"], rows)


def flow_tables() -> str:
    """The flows of the default configuration: what they are made of, what they take."""
    from toolmem.app import ToolMemApp

    parts = []
    for name, flow in ToolMemApp().settings.flow.items():
        rows = [("`workspace_id`", "string", "yes", "Which memory: letters, digits, `.`, `_`, `-`.")]
        rows += [
            (f"`{key}`", " or ".join(argument.types), "yes" if argument.required else "no", argument.description)
            for key, argument in flow.input_schema.items()
        ]
        parts += [f"## {name}", f"`{flow.flow_content.strip()}`", flow.description.strip()]
        parts.append(table(["argument", "type", "required", "meaning"], rows))
    return "\n\n".join(parts)
