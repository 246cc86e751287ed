"""Parse flow expressions. The text is parsed with `ast` and never evaluated.

    parse_tool_call_result_op >> update_vector_store_op
    ParseToolCallResultOp(max_history_tool_call_cnt=100) >> UpdateVectorStoreOp()

`>>` binds tighter than `|`, as in Python. An expression may have several lines, and lines
`name = ...` before it.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any

from toolmem.config.names import hint
from toolmem.errors import ConfigError, FlowSyntaxError
from toolmem.flow.op import Node, Op, Parallel, Sequential
from toolmem.text.forms import snake_case

MAX_CHARACTERS = 20_000
MAX_LINES = 500
MAX_OPS = 500
MAX_DEPTH = 50
ALLOWED = (
    "allowed are op names, Op(name=literal, ...), >>, |, parentheses, "
    "and lines `name = ...` before the last expression"
)

MakeOp = Callable[[type[Op], str, dict[str, Any]], Op]  # class, key, literals


def parse(text: str, ops: Mapping[str, type[Op]], *, source: str, make: MakeOp) -> Node:
    """Parse a flow. `ops`: classes by name. `source`: the setting of the text, for messages.

    Raises FlowSyntaxError for problems of the text; if it has none, ConfigError for wrong params.
    """
    reader = _Reader(ops, source, make)
    flow = reader.read(text)
    if reader.problems:
        raise FlowSyntaxError(reader.problems)
    if flow is None or reader.param_problems:
        raise ConfigError(reader.param_problems)
    return flow


_ASSIGNMENT = re.compile(r"\s*(#.*|\w+\s*=(?!=).*)?\Z")


def _split(lines: list[str]) -> tuple[list[ast.stmt], ast.expr, int]:
    """The statements, the flow after them, and the line (from 0) at which the flow begins.

    The flow is the longest tail that parses as one expression. Its nodes begin at line 2. Raises
    SyntaxError.
    """
    likely_start = len(list(takewhile(_ASSIGNMENT.match, lines)))
    likely_error = SyntaxError("the last line must be the flow itself")
    for start in range(len(lines)):
        before = "\n" * start
        rest = "\n".join(lines[start:])
        try:
            flow = ast.parse(f"{before}(\n{rest}\n)", mode="eval").body
            ast.parse(f"{before}[\n{rest}\n]", mode="eval")  # refuses `a) >> (b`, unlike the above
            head = ast.parse("\n".join(["", *(line.strip() for line in lines[:start])])).body
        except SyntaxError as error:
            if start == likely_start:  # its line counts the parentheses put around the text
                likely_error = error
                likely_error.lineno = min(max(error.lineno or 1, start + 2), len(lines) + 1) - 1
        else:
            return head, flow, start
    raise likely_error


class _Reader:
    def __init__(self, ops: Mapping[str, type[Op]], source: str, make: MakeOp) -> None:
        self.problems: list[str] = []
        self.param_problems: list[str] = []
        self._ops = ops
        self._source = source
        self._make = make
        self._lines: list[str] = []
        self._flow_line = 0  # from 0; the lines `name = ...` come before it
        self._assigned: dict[str, Node | None] = {}  # flows by name; None: not readable
        self._op_count = 0

    def read(self, text: str) -> Node | None:
        self._lines = text.splitlines()
        if len(text) > MAX_CHARACTERS or len(self._lines) > MAX_LINES:
            limits = f"{MAX_CHARACTERS} characters or {MAX_LINES} lines"
            return self._report(f"is longer than {limits}", 1, 1)
        if not any(line.partition("#")[0].strip() for line in self._lines):
            return self._report("is empty", 1, 1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # for backslashes in literals
                head, flow, self._flow_line = _split(self._lines)
        except SyntaxError as error:
            return self._report(f"{error.msg}; {ALLOWED}", error.lineno or 1, error.offset or 1)
        except (ValueError, RecursionError, MemoryError) as error:
            return self._report(f"cannot be read ({error or 'nested too deeply'})", 1, 1)
        for statement in head:
            self._assign(statement)
        return self._node(flow, 0)

    def _assign(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in self._assigned:
                    self._reject(statement, f"{name!r} is assigned twice")
                self._assigned[name] = self._node(value, 0)
            case _:
                self._reject(statement, "only lines `name = ...` may come before the flow")

    def _node(self, node: ast.expr, depth: int) -> Node | None:
        if depth > MAX_DEPTH:
            return self._reject(node, f"nested more than {MAX_DEPTH} deep")
        match node:
            case ast.BinOp(op=ast.RShift() | ast.BitOr()):
                return self._composition(node, depth)
            case ast.Name(id=name) if name in self._assigned:
                flow = self._assigned[name]
                has_room = flow is None or self._has_room(node, len(list(flow.ops())))
                return flow if has_room else None
            case ast.Name(id=name):
                return self._op(node, name, {})
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name)
        return self._reject(node, ALLOWED)

    def _composition(self, node: ast.BinOp, depth: int) -> Node | None:
        """`a >> b >> c` is as deep as it is long, so its left side is walked in a loop."""
        sign = type(node.op)
        operands: list[ast.expr] = []
        here: ast.expr = node
        while isinstance(here, ast.BinOp) and type(here.op) is sign:
            operands.append(here.right)
            here = here.left
        parts = [self._node(operand, depth + 1) for operand in (here, *reversed(operands))]
        kind = Sequential if sign is ast.RShift else Parallel
        whole = [part for part in parts if part is not None]
        return kind(*whole) if len(whole) == len(parts) else None

    def _call(self, node: ast.Call, name: str) -> Node | None:
        before = len(self.problems)
        literals: dict[str, Any] = {}
        for argument in node.args:
            self._reject(argument, "positional arguments are not allowed: write name=value")
        for keyword in node.keywords:
            if keyword.arg is None:
                self._reject(keyword.value, "** is not allowed: write name=value")
                continue
            if keyword.arg in literals:
                self._reject(keyword.value, f"{keyword.arg!r} is given twice")
            try:
                literals[keyword.arg] = _literal(keyword.value)
            except _NotLiteral as error:
                rejected, expected = error.args
                self._reject(rejected, f"{keyword.arg}: expected {expected}")
        if name in self._assigned:
            self._reject(node, f"{name!r} is a name of this flow: write it without ()")
        return self._op(node, name, literals) if len(self.problems) == before else None

    def _op(self, node: ast.expr, name: str, literals: dict[str, Any]) -> Op | None:
        key = next((each for each in (name, snake_case(name)) if each in self._ops), None)
        if key is None:
            known = [*self._ops, *self._assigned]
            if name[:1].isupper():
                known = [op_class.__name__ for op_class in self._ops.values()]
            return self._reject(node, f"no op is called {name!r}; {hint(name, known)}")
        if not self._has_room(node, 1):
            return None
        try:
            return self._make(self._ops[key], key, literals)
        except ConfigError as error:
            self.param_problems += error.problems
            return None

    def _has_room(self, node: ast.expr, more: int) -> bool:
        had_room = self._op_count <= MAX_OPS
        self._op_count += more
        has_room = self._op_count <= MAX_OPS
        if had_room and not has_room:  # reported once
            self._reject(node, f"more than {MAX_OPS} ops")
        return has_room

    def _reject(self, node: ast.stmt | ast.expr, reason: str) -> Op | None:
        """Report a problem at the node's position in the original text."""
        line = self._lines[node.lineno - 2]
        is_in_head = node.lineno - 2 < self._flow_line
        indent = len(line) - len(line.lstrip()) if is_in_head else 0  # `_split` strips the head
        in_bytes = line.encode()[: node.col_offset + indent]
        return self._report(reason, node.lineno - 1, len(in_bytes.decode("utf-8", "ignore")) + 1)

    def _report(self, reason: str, line: int, column: int) -> Op | None:
        """Add a problem. Returns None, so that a reading method can end with it."""
        fragment = "".join(self._lines[line - 1 : line])[column - 1 :].strip()[:80]
        at = f" at {fragment!r}" if fragment else ""
        self.problems.append(f"{self._source}: line {line}, column {column}{at}: {reason}")
        return None


class _NotLiteral(Exception):
    """Raised with a node that is no literal, and what was expected instead."""


_PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}


def _literal(node: ast.expr, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise _NotLiteral(node, f"a literal nested at most {MAX_DEPTH} deep")
    match node:
        case ast.Constant() | ast.UnaryOp():
            with suppress(ValueError):  # such as `not x`
                value = ast.literal_eval(node)
                if isinstance(value, float) and not math.isfinite(value):
                    raise _NotLiteral(node, "a finite number")
                if isinstance(value, str | bool | int | float | None):
                    return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            mapping: dict[str, Any] = {}
            for key, each in zip(keys, values, strict=True):
                if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                    raise _NotLiteral(key or node, "a dict whose keys are text in quotes")
                if key.value in mapping:
                    raise _NotLiteral(key, f"each key once ({key.value!r} is given twice)")
                mapping[key.value] = _literal(each, depth + 1)
            return mapping
        case ast.Name(id=word) if word in _PYTHON_WORDS:
            raise _NotLiteral(node, _PYTHON_WORDS[word])
    expected = "text in quotes, a number, True, False, None, or a list or dict of these"
    raise _NotLiteral(node, expected)
