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

from toolmem.config.names import hint
from toolmem.config.problems import shown
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


@dataclass(frozen=True)
class Composed:
    """Parts joined by `>>` or `|`."""

    kind: type[Sequential] | type[Parallel]
    parts: tuple[Plan, ...]


Plan = Call | Composed


def parse(text: str, ops: Mapping[str, type[Op]], *, source: str = "flow_content") -> Node:
    """Read an expression and make its ops. `ops`: classes by the keys that the text may use.

    `parse(str(flow), ops) == flow`. Raises FlowSyntaxError (unreadable, unknown op) with every problem's line, column
    and fragment, and ConfigError where a literal is no valid param.
    """
    return build(read(text, ops, source=source), _make)


def _make(call: Call) -> Op:
    return call.op_class(**call.literals).under(call.key)


def build(plan: Plan, make: Callable[[Call], Op]) -> Node:
    """Make every op of a plan and compose them. Raises ConfigError with all that `make` raises."""
    problems: list[str] = []

    def noted(call: Call) -> Op | None:
        try:
            return make(call)
        except ConfigError as error:
            problems.extend(error.problems)
            return None

    node = build_into(plan, noted)
    if node is None:
        raise ConfigError(problems)
    return node


def build_into(plan: Plan, make: Callable[[Call], Op | None]) -> Node | None:
    """As `build`; None where `make` answered None for an op, after all of them were tried."""
    if isinstance(plan, Call):
        return make(plan)
    parts = [build_into(part, make) for part in plan.parts]
    return plan.kind(*[part for part in parts if part is not None]) if None not in parts else None


def calls(plan: Plan) -> list[Call]:
    """The ops of a plan, in reading order."""
    return [plan] if isinstance(plan, Call) else [call for part in plan.parts for call in calls(part)]


def read(
    text: str,
    ops: Mapping[str, type[Op]],
    *,
    source: str = "flow_content",
    unknown: Callable[[str], str | None] = lambda name: None,
) -> Plan:
    """Read an expression without making its ops. `unknown` may say more of a name that no op has.

    Raises FlowSyntaxError with every problem.
    """
    reader = _Reader(text, ops, source, unknown)
    plan = reader.whole()
    if reader.problems or plan is None:
        raise FlowSyntaxError(reader.problems)
    return plan


class _Reader:
    def __init__(
        self, text: str, ops: Mapping[str, type[Op]], source: str, unknown: Callable[[str], str | None]
    ) -> None:
        self.problems: list[str] = []
        self._source = source
        self._text = text
        self._ops = ops
        self._unknown = unknown
        self._names: dict[str, Plan | None] = {}  # None: its line could not be read, which is reported already
        self._made = 0
        self._shifts: list[int] = []  # per line: how many characters of indentation were taken away

    def whole(self) -> Plan | None:
        tree = self._tree()
        if tree is None:
            return None
        if not tree.body:
            self._say(1, 1, "", "is empty")
            return None
        for statement in tree.body[:-1]:
            self._assignment(statement)
        last = tree.body[-1]
        if not isinstance(last, ast.Expr):
            self._refuse(last, "the last line must be the flow itself")
            return None
        return self._plan(last.value, 0)

    def _tree(self) -> ast.Module | None:
        if not isinstance(self._text, str):
            self._say(1, 1, "", f"expected text, got {shown(self._text)}")
            return None
        if len(self._text) > MOST_CHARACTERS:
            self._say(1, 1, "", f"is {len(self._text)} characters long; at most {MOST_CHARACTERS} are read")
            return None
        first: SyntaxError | None = None
        for shaped in (textwrap.dedent(self._text), _joined(self._text)):
            self._shifts = _shifts(self._text, shaped)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # "\d" in a text: what it means is plain
                    return ast.parse(shaped)
            except SyntaxError as error:
                first = first or error
            except (ValueError, RecursionError, MemoryError) as error:
                self._say(1, 1, "", f"cannot be read ({str(error) or 'nested too deeply'}); {ALLOWED}")
                return None
        assert first is not None
        self._shifts = _shifts(self._text, textwrap.dedent(self._text))
        fragment = (first.text or "").strip()
        self._say(first.lineno or 1, first.offset or 1, fragment, f"{first.msg}; {ALLOWED}")
        return None

    def _assignment(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in self._names:
                    self._refuse(statement, f"{name!r} is assigned twice")
                self._names[name] = self._plan(value, 0)
            case _:
                self._refuse(statement, "only lines `name = ...` may stand before the flow")

    def _plan(self, node: ast.expr, depth: int) -> Plan | None:
        if depth > MOST_DEPTH:
            self._refuse(node, f"nested more than {MOST_DEPTH} deep")
            return None
        match node:
            case ast.BinOp(op=ast.RShift() | ast.BitOr()):
                return self._composed(node, depth)
            case ast.Name(id=name):
                return self._named(node, name)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name)
        self._refuse(node, ALLOWED)
        return None

    def _composed(self, node: ast.BinOp, depth: int) -> Plan | None:
        # `a >> b >> c` leans to the left as deep as it is long: its spine is walked, not recursed into.
        sign = type(node.op)
        operands: list[ast.expr] = []
        here: ast.expr = node
        while isinstance(here, ast.BinOp) and type(here.op) is sign:
            operands.append(here.right)
            here = here.left
        operands.append(here)
        parts = [self._plan(operand, depth + 1) for operand in reversed(operands)]
        if any(part is None for part in parts):
            return None
        kind: type[Sequential] | type[Parallel] = Sequential if sign is ast.RShift else Parallel
        return Composed(kind, tuple(part for part in parts if part is not None))

    def _named(self, node: ast.Name, name: str) -> Plan | None:
        if name in self._names:
            plan = self._names[name]
            return plan if plan is not None and self._count(node, len(calls(plan))) else None
        return self._made_of(node, name, {})

    def _call(self, node: ast.Call, name: str) -> Plan | None:
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
        return self._made_of(node, name, literals) if len(self.problems) == before else None

    def _made_of(self, node: ast.expr, name: str, literals: dict[str, Any]) -> Plan | None:
        key = self._key(name)
        if key is None:
            more = self._unknown(name)
            known = {*self._ops, *self._names}
            if name[:1].isupper():
                known = {op_class.__name__ for op_class in self._ops.values()}
            self._refuse(node, more or f"no op is called {name!r}; {hint(name, known)}")
            return None
        if not self._count(node, 1):
            return None
        line, column = self._where(node)
        return Call(key, self._ops[key], literals, line, column)

    def _key(self, name: str) -> str | None:
        """A class name stands for the key of its snake_case name, which the configuration may give another backend."""
        if name in self._ops:
            return name
        snake = snake_case(name)
        if snake != name and snake in self._ops and name[:1].isupper():
            return snake
        return next((key for key in self._ops if self._ops[key].__name__ == name and self._ops[key].name == key), None)

    def _count(self, node: ast.expr, more: int) -> bool:
        self._made += more
        if self._made > MOST_OPS >= self._made - more:
            self._refuse(node, f"more than {MOST_OPS} ops")
        return self._made <= MOST_OPS

    def _where(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        lines = self._text.splitlines()
        shift = self._shifts[node.lineno - 1] if node.lineno <= len(self._shifts) else 0
        line = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
        characters = len(line[shift:].encode("utf-8")[: node.col_offset].decode("utf-8", "ignore"))
        return node.lineno, characters + shift + 1

    def _refuse(self, node: ast.stmt | ast.expr, reason: str) -> None:
        line, column = self._where(node)
        lines = self._text.splitlines()
        fragment = lines[line - 1][column - 1 :].strip() if line <= len(lines) else ""
        self._say(line, column, fragment, reason)

    def _say(self, line: int, column: int, fragment: str, reason: str) -> None:
        at = f" at {shown(fragment)}" if fragment else ""
        self.problems.append(f"{self._source}: line {line}, column {column}{at}: {reason}")


def _joined(text: str) -> str:
    """Each line without its indentation, and lines that begin or end with an operator joined to their neighbour."""
    lines = [line.strip() for line in text.splitlines()]
    for i in range(len(lines) - 1):
        following = next((line for line in lines[i + 1 :] if line), "")
        goes_on = lines[i].endswith((">>", "|")) or following.startswith((">>", "|"))
        if goes_on and following and not lines[i].startswith("#"):
            lines[i] += " \\" if lines[i] else "\\"
    return "\n".join(lines)


def _shifts(original: str, shaped: str) -> list[int]:
    return [
        max(0, (len(before) - len(before.lstrip())) - (len(after) - len(after.lstrip())))
        for before, after in zip(original.splitlines(), shaped.splitlines(), strict=False)
    ]


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
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if (
            not isinstance(number, bool)
        ):
            value = _literal(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            return _literal_dict(node, keys, values, depth)
        case ast.Name(id="true" | "false" | "null" as word):
            raise _NotLiteralError(node, {"true": "True", "false": "False", "null": "None"}[word])
    raise _NotLiteralError(node)


def _literal_dict(node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr], depth: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in zip(keys, values, strict=True):
        name = _literal(key, depth + 1) if key is not None else None
        if not isinstance(name, str):
            raise _NotLiteralError(key if key is not None else node, "a dict whose keys are text in quotes")
        if name in mapping:
            raise _NotLiteralError(value, f"each key once ({name!r} stands twice)")
        mapping[name] = _literal(value, depth + 1)
    return mapping
