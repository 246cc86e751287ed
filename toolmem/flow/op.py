"""Ops, the small, stateless steps of a flow; their composition, and the context in which they run.

`a >> b` runs one after the other, `a | b` in parallel. `register` lets configurations name an op.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, ClassVar, TypeVar, cast

import msgspec
from msgspec import Struct

from toolmem.config.check import OriginOf, check
from toolmem.config.sections import OpSection
from toolmem.errors import ConfigError, RequestError, RunCancelled
from toolmem.flow.report import Event, OpReport
from toolmem.flow.services import Services
from toolmem.guidance.wording import Language
from toolmem.models.tools import FlowResponse
from toolmem.text.forms import snake_case


class Node:
    """An op, or a composition of ops."""

    def __rshift__(self, other: Node) -> Sequential:
        return Sequential(self, other) if isinstance(other, Node) else NotImplemented

    def __or__(self, other: Node) -> Parallel:
        return Parallel(self, other) if isinstance(other, Node) else NotImplemented

    def ops(self) -> Iterator[Op]:
        """Every op of the flow, in reading order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)


class Composition(Node):
    """Two or more parts. A part of the same kind is flattened: `(a >> b) >> c` is `a >> b >> c`."""

    sign: ClassVar[str]

    def __init__(self, *parts: Node) -> None:
        inner = (part.parts if isinstance(part, type(self)) else (part,) for part in parts)
        self.parts: tuple[Node, ...] = tuple(chain.from_iterable(inner))

    def ops(self) -> Iterator[Op]:
        for part in self.parts:
            yield from part.ops()

    def __str__(self) -> str:
        bracketed = Parallel if isinstance(self, Sequential) else ()
        return self.sign.join(f"({p})" if isinstance(p, bracketed) else str(p) for p in self.parts)


class Sequential(Composition):
    """Parts that run one after the other: an op finds what the ops before it left."""

    sign = " >> "


class Parallel(Composition):
    """Parts that run in parallel, each in a thread: none finds what another one leaves."""

    sign = " | "


class NoParams(Struct, frozen=True):
    """The params of an op that has none."""


class Op(Node):
    """One step of a flow. A subclass says what it reads and leaves, and does its work in `run`.

    `run` may be `async def`; it then gets an event loop of its own. An op keeps nothing between
    runs: one instance may run in several flows at once.
    """

    Params: ClassVar[type[Struct]] = NoParams
    reads: ClassVar[tuple[str, ...]] = ()  # keys of the request, or left by an earlier op
    optional: ClassVar[tuple[str, ...]] = ()  # keys that it uses if they are present
    leaves: ClassVar[tuple[str, ...]] = ()  # keys that it leaves for later ops
    takes_results: ClassVar[bool] = False  # `tool_call_results` may hold ToolCallResults
    name: ClassVar[str] = "op"  # its name in configurations: the class name in snake_case

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = snake_case(cls.__name__)

    def __init__(self, **literals: Any) -> None:
        """Opens nothing. Raises ConfigError with every problem of the params."""
        self.key = self.name  # or an alias of the configuration
        self.literals = literals
        self.settings = OpSection()
        self.params: Any = checked_params(type(self), self.key, literals)

    def run(self, context: Context) -> None | Awaitable[None]:
        """Read `context[key]`, do the work, and set the keys that are declared in `leaves`."""
        raise NotImplementedError

    def ops(self) -> Iterator[Op]:
        yield self

    def __str__(self) -> str:
        label = type(self).__name__ if self.key == self.name else self.key
        return f"{label}({', '.join(f'{name}={value!r}' for name, value in self.literals.items())})"


def checked_params(
    op_class: type[Op], key: str, given: Mapping[str, Any], origin_of: OriginOf = lambda path: ""
) -> Struct:
    """Convert params to the op's Struct. Raises ConfigError with all problems and their origins."""
    params, problems = check(dict(given), op_class.Params, ("op", key, "params"), origin_of)
    if problems:
        raise ConfigError(problems)
    return cast(Struct, params)


class Cancellation:
    """Tells the branches of a run that it was cancelled."""

    def __init__(self) -> None:
        self.is_set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Cancel the run, and call every registered callback."""
        self.is_set = True
        for callback in list(self._callbacks):
            callback()

    @contextmanager
    def on_set(self, callback: Callable[[], None]) -> Iterator[None]:
        """Within the block, a cancellation calls `callback`, to end what the branch waits for."""
        self._callbacks.append(callback)
        if self.is_set:
            callback()
        try:
            yield
        finally:
            self._callbacks.remove(callback)


# Set by callers that run flows in a thread, so that they can cancel them.
outer_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


class Context(Struct):
    """One op's view of a run. All ops of a run share the data and the response.

    `context[key]` reads the request and what earlier ops left; `context[key] = value` leaves
    something for later ops, and takes only what the op declares in `leaves`.
    """

    op: Op
    services: Services
    response: FlowResponse
    _data: dict[str, Any]
    report: OpReport
    _emit: Callable[[Event], None]
    cancellation: Cancellation
    flow: str  # its name in the configuration; "": composed in Python

    @property
    def workspace(self) -> str:
        return cast(str, self["workspace"])

    @property
    def language(self) -> Language:
        """The language of the op's guidance: its own setting, else that of the configuration."""
        own = self.op.settings.language
        return self.services.settings.language if own is None else own

    def __getitem__(self, key: str) -> Any:
        try:
            return self._data[key]
        except KeyError:
            problem = f"{self.op.key}: neither the request nor an earlier op holds {key!r}"
            raise KeyError(problem) from None

    def get(self, key: str, default: Any = None) -> Any:
        return self._data.get(key, default)

    def names(self, key: str) -> list[str] | None:
        """The distinct names under a key; None where the key is absent.

        A string holds names separated by commas. Raises RequestError where there is no name.
        """
        given = self.get(key)
        if given is None:
            return None
        if isinstance(given, str):
            given = [name.strip() for name in given.split(",")]
        try:
            names: list[str] = msgspec.convert(given, list[str])
        except msgspec.ValidationError:
            raise RequestError(f"{key}: expected names", field=key) from None
        found = list(dict.fromkeys(filter(None, names)))
        if not found:
            raise RequestError(f"{key}: no name is given", field=key)
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self.op.leaves:
            raise TypeError(
                f"{self.op.key} leaves {key!r} without declaring it: "
                f"add it to {type(self.op).__name__}.leaves"
            )
        self._data[key] = value

    def progress(self, done: int, total: int, message: str) -> None:
        """Report progress to the listeners. Raises RunCancelled where the run was cancelled."""
        if self.cancellation.is_set:
            raise RunCancelled(f"{self.op.key}: the run was cancelled")
        self._emit(Event("progress", self.op.key, done=done, total=total, message=message))

    def note(self, text: str) -> None:
        """Add a line to the run report."""
        self.report.notes.append(text)


OpClass = TypeVar("OpClass", bound=type[Op])

_ops: dict[str, type[Op]] = {}


def register(op_class: OpClass) -> OpClass:
    """Register an op (class decorator). Raises TypeError if its name is taken, or `run` missing."""
    if op_class.run is Op.run:
        raise TypeError(f"{op_class.__qualname__}: an op needs a method `run(self, context)`")
    known = _ops.setdefault(op_class.name, op_class)
    if known is not op_class and known.__qualname__ != op_class.__qualname__:
        raise TypeError(
            f"{op_class.__qualname__}: {known.__qualname__} is called {op_class.name!r} already"
        )
    _ops[op_class.name] = op_class  # a notebook cell that is run again defines the class anew
    return op_class


def known_ops() -> Mapping[str, type[Op]]:
    """Return the registered op classes by name."""
    return _ops
