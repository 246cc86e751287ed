"""Build the flows of a configuration, with the effective params of their ops.

The op's class, `op.<key>.params` of the files, a literal in the flow and an override may set a
param. The last of these wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from toolmem.config.load import Configuration
from toolmem.config.names import hint
from toolmem.config.reme import foreign_ops_of
from toolmem.config.sections import Argument, OpSection
from toolmem.errors import ConfigError
from toolmem.flow.checks import check_flow
from toolmem.flow.expression import parse
from toolmem.flow.op import Composition, Node, Op, checked_params


class Flow(Struct, frozen=True):
    """A flow of the configuration, ready to run."""

    node: Node
    arguments: Mapping[str, Argument]
    description: str


class Flows(NamedTuple):
    """The flows that can be run, and why others cannot, by name."""

    ready: dict[str, Flow]
    left_out: dict[str, str]


def bind_flows(configuration: Configuration, ops: Mapping[str, type[Op]]) -> Flows:
    """Build the configured flows. `ops`: classes by name. Raises ConfigError with all problems."""
    problems = list(configuration.problems)
    known = _with_aliases(configuration, ops, problems)
    flows = {}
    left_out = _left_out(configuration, ops)
    make = partial(bind_op, configuration)
    for name, section in configuration.settings.flow.items():
        if name in left_out:
            continue
        try:
            node = parse(section.flow_content, known, source=f"flow.{name}.flow_content", make=make)
        except ConfigError as error:
            problems += error.problems
            continue
        found = check_flow(node, section.input_schema, known)
        problems += [f"flow.{name}: {problem}" for problem in found]
        flows[name] = Flow(node, section.input_schema, section.description)
    problems += _unused_overrides(configuration, ops, flows, problems)
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return Flows(flows, left_out)


def _left_out(configuration: Configuration, ops: Mapping[str, type[Op]]) -> dict[str, str]:
    """Why flows cannot be run: they are switched off, or use ops of ReMe that toolmem lacks."""
    settings = configuration.settings
    left_out = {}
    for name, section in settings.flow.items():
        foreign = foreign_ops_of(section.flow_content, ops)
        if name in settings.disabled_flows:
            left_out[name] = "switched off by disabled_flows"
        elif settings.enabled_flows and name not in settings.enabled_flows:
            left_out[name] = "not among enabled_flows"
        elif foreign:
            left_out[name] = f"not provided by toolmem: {', '.join(foreign)}"
    return left_out


def _unused_overrides(
    configuration: Configuration,
    ops: Mapping[str, type[Op]],
    flows: Mapping[str, Flow],
    known_problems: Sequence[str],
) -> list[str]:
    """Problems of overrides: an op has no such param, or no flow uses the op.

    The user's own ops need no flow here: they may be part of one composed in Python.
    """
    used = {op.key for flow in flows.values() for op in flow.node.ops()}
    problems = []
    for key, section in configuration.settings.op.items():
        op_class = ops.get(section.backend or key)
        if op_class is None:
            continue
        fields = op_class.Params.__struct_fields__
        for name in configuration.op_params(key, overrides=True):
            place = f"op.{key}.params.{name}"
            if key in used or any(each.startswith(place) for each in known_problems):
                continue
            if name not in fields:
                problems.append(f"{place}: unknown ({hint(name, fields, f'op.{key}.params.')})")
            elif op_class.__module__.startswith("toolmem."):
                problems.append(f"{place}: no flow uses {key!r} ({hint(key, used)})")
    return problems


def _with_aliases(
    configuration: Configuration, ops: Mapping[str, type[Op]], problems: list[str]
) -> dict[str, type[Op]]:
    known = dict(ops)
    for key, section in configuration.settings.op.items():
        backend = section.backend or key
        if backend in ops:
            known[key] = ops[backend]
        else:
            place = configuration.origin_of(("op", key, "backend"))
            problems.append(f"op.{key}: no op is called {backend!r}; {hint(backend, ops)}{place}")
    return known


def bind_node(configuration: Configuration, node: Node) -> Node:
    """Return a flow that was composed in Python, with the configured params of its ops."""
    if isinstance(node, Composition):
        return type(node)(*(bind_node(configuration, part) for part in node.parts))
    assert isinstance(node, Op)
    return bind_op(configuration, type(node), node.key, node.literals)


def bind_op(
    configuration: Configuration, op_class: type[Op], key: str, literals: Mapping[str, Any]
) -> Op:
    """Make an op. Overrides win over `literals`, which win over files. Raises ConfigError."""
    from_files = configuration.op_params(key, overrides=False)
    from_overrides = configuration.op_params(key, overrides=True)
    params = {**from_files, **literals, **from_overrides}

    def origin_of(path: tuple[str, ...]) -> str:
        is_literal = path[-1] in literals and path[-1] not in from_overrides
        return " [flow_content]" if is_literal else configuration.origin_of(path)

    checked = checked_params(op_class, key, params, origin_of)
    op = op_class.__new__(op_class)
    op.key = key
    op.literals = dict(literals)
    op.params = checked
    op.settings = configuration.settings.op.get(key, OpSection())
    return op
