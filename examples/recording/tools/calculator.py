"""`calculator`: arithmetic by a small parser of its own, so that its messages are the same on every Python."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import ClassVar

from examples.recording.tools.tool import Answer, Arguments, Tool, Wording, done, failure, object_schema

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|//|[-+*/%(),]))")
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "log": math.log,
}


class CalculationError(ValueError):
    """The expression cannot be worked out."""


class Calculator(Tool):
    name = "calculator"
    description = "Work out an arithmetic expression: + - * / // % ** ( ) and sqrt, abs, min, max, round, log."
    parameters = object_schema(
        ("expression",),
        expression={"type": "string", "description": "Plain numbers without thousands separators or currency signs."},
    )
    wording: ClassVar[Wording] = "python"

    def run(self, arguments: Arguments) -> Answer:
        try:
            value = Expression(arguments["expression"]).value()
        except (CalculationError, ZeroDivisionError, OverflowError) as error:
            return failure(f"{type(error).__name__}: {error}")
        return done(f"{value:.10g}" if isinstance(value, float) else str(value))


class Expression:
    """Recursive descent: sum > product > sign > power > atom, as in Python."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []  # kind, text, position from 1
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                bad = len(text[position:]) - len(text[position:].lstrip()) + position
                hint = "; powers are written **" if text[bad] == "^" else ""
                raise CalculationError(f"unexpected character '{text[bad]}' at position {bad + 1}{hint}")
            kind = match.lastgroup or ""
            self._tokens.append((kind, match[kind], match.start(kind) + 1))
            position = match.end()
        self._next = 0

    def value(self) -> float:
        result = self._sum()
        if self._next < len(self._tokens):
            _, token, position = self._tokens[self._next]
            raise CalculationError(f"unexpected '{token}' at position {position}")
        return result

    def _peek(self) -> str:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else ""

    def _take(self, *signs: str) -> str:
        if self._peek() in signs and self._peek():
            self._next += 1
            return self._tokens[self._next - 1][1]
        return ""

    def _sum(self) -> float:
        result = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            result = result + other if sign == "+" else result - other
        return result

    def _product(self) -> float:
        result = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            other = self._signed()
            if sign != "*" and other == 0:
                raise ZeroDivisionError("division by zero")
            if sign == "*":
                result *= other
            elif sign == "/":
                result /= other
            elif sign == "//":
                result //= other
            else:
                result %= other
        return result

    def _signed(self) -> float:
        if self._take("-"):
            return -self._signed()
        self._take("+")
        return self._power()

    def _power(self) -> float:
        base = self._atom()
        if not self._take("**"):
            return base
        exponent = self._signed()
        if abs(exponent) > 1000:
            raise OverflowError("exponent too large")
        result = base**exponent
        if isinstance(result, complex):
            raise CalculationError("power of a negative number")
        return float(result) if not isinstance(result, int) else result

    def _atom(self) -> float:
        if self._next == len(self._tokens):
            raise CalculationError("unexpected end of expression")
        kind, token, position = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return float(token) if "." in token else int(token)
        if kind == "name":
            return self._function(token, position)
        if token == "(":
            result = self._sum()
            if not self._take(")"):
                raise CalculationError(f"'(' at position {position} is never closed")
            return result
        raise CalculationError(f"unexpected '{token}' at position {position}")

    def _function(self, name: str, position: int) -> float:
        if name not in _FUNCTIONS:
            raise CalculationError(f"unknown name '{name}' at position {position}; known: {', '.join(_FUNCTIONS)}")
        if not self._take("("):
            raise CalculationError(f"'{name}' needs parentheses")
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        if not self._take(")"):
            raise CalculationError(f"'{name}(' at position {position} is never closed")
        if name == "round" and len(arguments) > 1:
            arguments[1] = int(arguments[1])
        try:
            return _FUNCTIONS[name](*arguments)
        except (ValueError, TypeError):
            raise CalculationError(f"{name}: wrong number or range of arguments") from None
