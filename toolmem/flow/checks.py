"""Checks made before anything runs: of a flow (does each op find what it reads?) and of a request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolmem.config.nearest_names import hint, nearest
from toolmem.config.problems import shown
from toolmem.config.settings import Argument
from toolmem.errors import RequestError
from toolmem.flow.op import Node, Op, Parallel, Sequential
from toolmem.flow.registry import known_ops
from toolmem.readers.json_values import is_json_type

WORKSPACE_KEY = "workspace_id"
WORKSPACE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


# ---------------------------------------------------------------- of a flow


def check_flow(node: Node, held: Iterable[str], *, ops: Mapping[str, type[Op]] | None = None) -> list[str]:
    """Every problem with what the ops of a flow read and leave; `held`: the keys that its request may hold."""
    walk = _Walk(known_ops() if ops is None else ops)
    walk.visit(node, frozenset(held) | {WORKSPACE_KEY})
    return walk.problems + walk.left_too_late()


def wanted(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(keys that the flow needs of its request, keys that it uses where they are there)."""
    walk = _Walk({})
    walk.visit(node, frozenset())
    optional = dict.fromkeys(key for op in node.ops() for key in op.optional)
    return tuple(walk.missing), tuple(key for key in optional if key not in walk.missing)


class _Walk:
    def __init__(self, ops: Mapping[str, type[Op]]) -> None:
        self.problems: list[str] = []
        self.missing: dict[str, None] = {}  # keys that an op reads and none before it leaves
        self._ops = ops
        self._visited: list[Op] = []
        self._unfound: list[tuple[int, list[str]]] = []  # place in the flow, keys that the op there goes without

    def visit(self, node: Node, held: frozenset[str]) -> frozenset[str]:
        """Answers the keys that are there after the node."""
        if isinstance(node, Sequential):
            for part in node.parts:
                held = self.visit(part, held)
            return held
        if isinstance(node, Parallel):
            return self._visit_branches(node, held)
        assert isinstance(node, Op)
        missing = dict.fromkeys(key for key in node.reads if key not in held)
        self.missing |= missing
        self.problems += [self._missing(node, key) for key in missing]
        self._unfound.append((len(self._visited), [key for key in node.optional if key not in held]))
        self._visited.append(node)
        return held | set(node.leaves)

    def _visit_branches(self, node: Parallel, held: frozenset[str]) -> frozenset[str]:
        left_by: dict[str, Node] = {}
        for branch in node.parts:
            for key in {key for op in branch.ops() for key in op.leaves}:
                if key in left_by:
                    self.problems.append(
                        f"{branch} and {left_by[key]} run side by side and both leave {key!r}: which one stays is "
                        f"chance; compose them by >>"
                    )
                left_by.setdefault(key, branch)
        after = held
        for branch in node.parts:
            beside = {key: other for key, other in left_by.items() if other is not branch}
            for op in branch.ops():
                crossed = [key for key in (*op.reads, *op.optional) if key in beside]
                self.problems += [
                    f"{op.key} reads {key!r}, which {beside[key]} leaves in a parallel branch: compose them by >>"
                    for key in crossed
                ]
            # What a sibling leaves is reported above; it is not a missing key as well.
            after |= self.visit(branch, held | set(beside))
        return after

    def left_too_late(self) -> list[str]:
        """Ops that go without a key which a later op leaves for nobody: the two stand in the wrong order."""
        problems = []
        for place, keys in self._unfound:
            for later, leaver in enumerate(self._visited[place + 1 :], start=place + 1):
                behind = {key for op in self._visited[later + 1 :] for key in (*op.reads, *op.optional)}
                lost = [key for key in keys if key in leaver.leaves and key not in behind]
                if lost:
                    problems.append(
                        f"{self._visited[place].key} uses {' and '.join(map(repr, lost))}, but {leaver.key}, which "
                        f"leaves {'it' if len(lost) == 1 else 'them'}, comes after it: put {leaver.key} before it"
                    )
        return problems

    def _missing(self, op: Op, key: str) -> str:
        could = _who_leaves(key, self._ops)
        remedy = f"put {could} before it, or declare" if could else "declare"
        return f"{op.key} reads {key!r}, but no op before it leaves it: {remedy} it in input_schema"


def _who_leaves(key: str, ops: Mapping[str, type[Op]]) -> str:
    return " or ".join(name for name in ops if key in ops[name].leaves)


# ---------------------------------------------------------------- of a request


def check_workspace(workspace: Any, field: str = WORKSPACE_KEY) -> str:
    """Raises RequestError unless it is a workspace id: it names folders, files and index documents."""
    if not isinstance(workspace, str) or not WORKSPACE_PATTERN.fullmatch(workspace):
        raise RequestError(
            f"{field}: expected up to 128 letters, digits, '.', '_' or '-', the first a letter or digit; "
            f"got {shown(workspace)}",
            field=field,
        )
    return workspace


def check_arguments(given: Mapping[str, Any], arguments: Mapping[str, Argument | None]) -> dict[str, Any]:
    """What is given, without what is null: that counts as left out. None in `arguments`: anything will do.

    `workspace_id` is known, and not looked at. Raises RequestError, whose `field` names the first thing that is wrong.
    """
    known = [*arguments, WORKSPACE_KEY]
    for key in given:
        if key not in known:
            raise RequestError(f"{key}: unknown ({hint(str(key), known)})"[:300], field=str(key)[:100])
    accepted = {key: value for key, value in given.items() if value is not None}
    for key, argument in arguments.items():
        if argument is None:
            continue
        if key not in accepted:
            if argument.required:
                raise RequestError(f"{key}: missing (expected {argument.in_words()})", field=key)
        elif problem := _problem(accepted[key], argument):
            raise RequestError(f"{key}: {problem}", field=key)
    return accepted


def check_request(request: Mapping[str, Any], schema: Mapping[str, Argument] | None, node: Node) -> dict[str, Any]:
    """The request as the flow gets it.

    `schema` is the flow's `input_schema`; None (a flow composed in Python) takes what the ops read. Raises
    RequestError, whose `field` names the first thing that is wrong.
    """
    needed, optional = wanted(node)
    accepted = check_arguments(request, dict.fromkeys([*needed, *optional]) if schema is None else schema)
    if WORKSPACE_KEY not in accepted:
        raise RequestError(f"{WORKSPACE_KEY}: missing", field=WORKSPACE_KEY)
    check_workspace(accepted[WORKSPACE_KEY])
    for key in needed:
        if key not in accepted:
            reader = next(op.key for op in node.ops() if key in op.reads)
            could = _who_leaves(key, known_ops())
            remedy = f"; {could}, put before it, would leave it" if could else ""
            raise RequestError(f"{key}: missing ({reader} reads it{remedy})", field=key)
    return accepted


def _problem(value: Any, argument: Argument) -> str:
    if not any(_is(value, name, argument) for name in argument.types):
        return f"expected {argument.in_words()}, got {shown(value)}"
    # True == 1 in Python, but not in a request.
    if argument.enum is not None and not any(value == one and type(value) is type(one) for one in argument.enum):
        allowed = [one if isinstance(one, str) else shown(one) for one in argument.enum]
        meant = nearest(value[:100], allowed) if isinstance(value, str) else None
        near = f" (did you mean {meant!r}?)" if meant else ""
        return f"expected one of {', '.join(allowed)}; got {shown(value)}{near}"
    return ""


def _is(value: Any, name: str, argument: Argument) -> bool:
    """Is the value of this JSON type? Other than in JSON Schema, 5.0 is no integer, and a number is finite."""
    if not is_json_type(value, name) or (isinstance(value, float) and (name == "integer" or not math.isfinite(value))):
        return False
    return name != "array" or not argument.of_strings or all(isinstance(each, str) for each in value)
