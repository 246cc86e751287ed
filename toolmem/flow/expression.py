"""Flow expressions: text -> a flow, read through `ast` against a list of what is allowed; nothing is evaluated.

    parse_tool_call_result_op >> update_vector_store_op                                (names)
    ParseToolCallResultOp(max_history_tool_call_cnt=100) >> UpdateVectorStoreOp()      (classes with literals)

`>>` runs one after the other, `|` side by side and binds less; parentheses group. Both forms mix. An expression may go
over several lines, and `name = ...` lines may stand before it.
"""

from __future__ import annotations

import ast
import math
import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolmem.config.nearest_names import hint
from toolmem.config.problems import added_to, shown
from toolmem.errors import ConfigError, FlowSyntaxError
from toolmem.flow.op import Node, Op, Parallel, Sequential, snake_case

MOST_CHARACTERS = 20_000
MOST_OPS = 500
MOST_DEPTH = 50

ALLOWED = "allowed are op names, Op(name=literal, ...), >>, |, parentheses, and lines `name = ...` before the last one"
LITERALS = "a literal: text in quotes, a number, True, False, None, or a list or dict of these"


@dataclass(frozen=True)
class Call:
    """One op of an expression before it is made: what it is and where it stands (line from 1, column from 1)."""

    key: str
    op_class: type[Op]
    literals: dict[str, Any] = field(default_factory=dict)
    line: int = 1
    column: int = 1


def _make(call: Call) -> Op:
    return call.op_class(**call.literals).under(call.key)


def parse(
    text: str,
    ops: Mapping[str, type[Op]],
    *,
    source: str = "flow_content",
    make: Callable[[Call], Op] = _make,
    unknown: Callable[[str], str | None] = lambda name: None,
) -> Node:
    """Read an expression and make its ops.

    `ops`: classes by the keys that the text may use. `parse(str(flow), ops) == flow`. `unknown` may say more of a name
    that no op has. Raises FlowSyntaxError (unreadable, unknown op) with every problem's line, column and fragment, and
    ConfigError with all that `make` raises.
    """
    reader = FlowReader(text, ops, source, make, unknown)
    flow = reader.flow()
    if reader.problems:
        raise FlowSyntaxError(reader.problems)
    if flow is None:
        raise ConfigError(reader.unmade)
    return flow


@dataclass
class FlowReader:
    """Reads one expression. `problems` are those of the text, `unmade` those of ops that could not be made."""

    text: str
    ops: Mapping[str, type[Op]]
    source: str
    make: Callable[[Call], Op]
    unknown: Callable[[str], str | None]
    problems: list[str] = field(default_factory=list)
    unmade: list[str] = field(default_factory=list)
    _shaped: str = ""  # the text as `ast` read it
    _names: dict[str, Node | None] = field(default_factory=dict)  # None: its line has problems, reported already
    _count: int = 0  # of ops

    def flow(self) -> Node | None:
        body = self._statements()
        for statement in body[:-1]:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if name in self._names:
                        self._refuse(statement, f"{name!r} is assigned twice")
                    self._names[name] = self._node(value, 0)
                case _:
                    self._refuse(statement, "only lines `name = ...` may stand before the flow")
        match body[-1:]:
            case [ast.Expr(value=value)]:
                return self._node(value, 0)
            case [last]:
                return self._refuse(last, "the last line must be the flow itself")
        return None

    def _statements(self) -> list[ast.stmt]:
        if not isinstance(self.text, str):
            self._say(f"expected text, got {shown(self.text)}")
        elif len(self.text) > MOST_CHARACTERS:
            self._say(f"is {len(self.text)} characters long; at most {MOST_CHARACTERS} are read")
        else:
            body = self._parsed(textwrap.dedent(self.text), _joined(self.text))
            if not body and not self.problems:
                self._say("is empty")
            return body
        return []

    def _parsed(self, *shapes: str) -> list[ast.stmt]:
        errors: list[SyntaxError] = []
        for self._shaped in shapes:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # "\d" in a text: what it means is plain
                    return ast.parse(self._shaped).body
            except SyntaxError as error:
                errors.append(error)
            except (ValueError, RecursionError, MemoryError) as error:
                self._say(f"cannot be read ({str(error) or 'nested too deeply'}); {ALLOWED}")
                return []
        first = errors[0]
        self._say(f"{first.msg}; {ALLOWED}", first.lineno or 1, first.offset or 1, (first.text or "").strip())
        return []

    def _node(self, node: ast.expr, depth: int) -> Node | None:
        if depth > MOST_DEPTH:
            return self._refuse(node, f"nested more than {MOST_DEPTH} deep")
        match node:
            case ast.BinOp(op=ast.RShift() | ast.BitOr()):
                return self._composed(node, depth)
            case ast.Name(id=name) if name in self._names:
                flow = self._names[name]
                return flow if flow is not None and self._few_enough(node, sum(1 for _ in flow.ops())) else None
            case ast.Name(id=name):
                return self._op(node, name, {})
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name)
        return self._refuse(node, ALLOWED)

    def _composed(self, node: ast.BinOp, depth: int) -> Node | None:
        # `a >> b >> c` leans to the left as deep as it is long: its spine is walked, not recursed into.
        sign = type(node.op)
        operands: list[ast.expr] = []
        here: ast.expr = node
        while isinstance(here, ast.BinOp) and type(here.op) is sign:
            operands.append(here.right)
            here = here.left
        parts = [self._node(operand, depth + 1) for operand in (here, *reversed(operands))]
        kind = Sequential if sign is ast.RShift else Parallel
        return None if None in parts else kind(*(part for part in parts if part is not None))

    def _call(self, node: ast.Call, name: str) -> Node | None:
        literals: dict[str, Any] = {}
        before = len(self.problems)
        for argument in node.args:
            self._refuse(argument, "positional arguments are not allowed: write name=value")
        for keyword in node.keywords:
            if keyword.arg is None:
                self._refuse(keyword.value, "** is not allowed: write name=value")
            elif keyword.arg in literals:
                self._refuse(keyword.value, f"{keyword.arg!r} is given twice")
            else:
                try:
                    literals[keyword.arg] = _literal(keyword.value)
                except _NotLiteralError as error:
                    self._refuse(error.node, f"{keyword.arg}: expected {error.expected}")
        if name in self._names:
            self._refuse(node, f"{name!r} is a name of this flow, not an op: write it without ()")
        return self._op(node, name, literals) if len(self.problems) == before else None

    def _op(self, node: ast.expr, name: str, literals: dict[str, Any]) -> Op | None:
        key = self._key(name)
        if key is None:
            known = {*self.ops, *self._names}
            if name[:1].isupper():
                known = {op_class.__name__ for op_class in self.ops.values()}
            self._refuse(node, self.unknown(name) or f"no op is called {name!r}; {hint(name, known)}")
            return None
        if not self._few_enough(node, 1):
            return None
        with added_to(self.unmade):
            return self.make(Call(key, self.ops[key], literals, *self._where(node)))
        return None

    def _key(self, name: str) -> str | None:
        """A class name stands for the key of its snake_case name, which the configuration may give another backend."""
        if name in self.ops:
            return name
        snake = snake_case(name)
        if snake in self.ops and name[:1].isupper():
            return snake
        return next((key for key in self.ops if self.ops[key].__name__ == name and self.ops[key].name == key), None)

    def _few_enough(self, node: ast.expr, more: int) -> bool:
        self._count += more
        if self._count > MOST_OPS >= self._count - more:
            self._refuse(node, f"more than {MOST_OPS} ops")
        return self._count <= MOST_OPS

    def _where(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Line and column in the text as it was written."""
        written, shaped = (_line(text, node.lineno) for text in (self.text, self._shaped))
        shift = max(0, _indentation(written) - _indentation(shaped))
        return node.lineno, shift + len(written[shift:].encode()[: node.col_offset].decode("utf-8", "ignore")) + 1

    def _refuse(self, node: ast.stmt | ast.expr, reason: str) -> Node | None:
        line, column = self._where(node)
        self._say(reason, line, column, _line(self.text, line)[column - 1 :].strip())
        return None

    def _say(self, reason: str, line: int = 1, column: int = 1, fragment: str = "") -> None:
        at = f" at {shown(fragment)}" if fragment else ""
        self.problems.append(f"{self.source}: line {line}, column {column}{at}: {reason}")


def _line(text: str, number: int) -> str:
    return "".join(text.splitlines()[number - 1 : number])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(text: str) -> str:
    """Each line without its indentation, and lines that begin or end with an operator joined to their neighbour."""
    lines = [line.strip() for line in text.splitlines()]
    for i in range(len(lines) - 1):
        following = next((line for line in lines[i + 1 :] if line), "")
        goes_on = lines[i].endswith((">>", "|")) or following.startswith((">>", "|"))
        if goes_on and following and not lines[i].startswith("#"):
            lines[i] += " \\" if lines[i] else "\\"
    return "\n".join(lines)


class _NotLiteralError(Exception):
    def __init__(self, node: ast.expr, expected: str = LITERALS) -> None:
        self.node = node
        self.expected = expected


def _literal(node: ast.expr, depth: int = 0) -> Any:
    if depth > MOST_DEPTH:
        raise _NotLiteralError(node, f"a literal nested at most {MOST_DEPTH} deep")
    match node:
        case ast.Constant(value=str() | bool() | int() | None):
            return node.value
        case ast.Constant(value=float() as number):
            if not math.isfinite(number):
                raise _NotLiteralError(node, "a finite number")
            return number
        case ast.UnaryOp(
            op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float()) as operand
        ) if not isinstance(operand.value, bool):
            value = _literal(operand)
            return -value if isinstance(sign, ast.USub) else value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            mapping: dict[str, Any] = {}
            for key, value in zip(keys, values, strict=True):
                if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                    raise _NotLiteralError(key or node, "a dict whose keys are text in quotes")
                if key.value in mapping:
                    raise _NotLiteralError(value, f"each key once ({key.value!r} stands twice)")
                mapping[key.value] = _literal(value, depth + 1)
            return mapping
        case ast.Name(id="true" | "false" | "null" as word):
            raise _NotLiteralError(node, {"true": "True", "false": "False", "null": "None"}[word])
    raise _NotLiteralError(node)
