"""An op: one step of a flow, small, stateless, checked before it runs; and the context that it works with.

This module knows nothing of tools.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal

from toolmem.config.problems import Placing, check
from toolmem.config.section_base import Section
from toolmem.config.settings import OpSettings
from toolmem.errors import ConfigError
from toolmem.flow.report import Event, OpReport
from toolmem.models import FlowResponse, Usage
from toolmem.protocols import Meter, Purpose, Services


class OpParams(Section):
    """Base of an op's typed params: strict types, unknown names refused, no infinite numbers.

    A whole number is accepted where a float is declared; true and false are never numbers.
    """


SETTING_NAMES = tuple(OpSettings.model_fields)


def snake_case(class_name: str) -> str:
    """`ParseToolCallResultOp` -> `parse_tool_call_result_op`; `LLMJudgeOp` -> `llm_judge_op`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name)
    return spaced.lower()


class Node:
    """An op, or ops composed by `a >> b` (one after the other) and `a | b` (side by side)."""

    def __rshift__(self, other: Node) -> Sequential:
        if not isinstance(other, Node):
            return NotImplemented
        return Sequential(self, other)

    def __or__(self, other: Node) -> Parallel:
        if not isinstance(other, Node):
            return NotImplemented
        return Parallel(self, other)

    def ops(self) -> Iterator[Op]:
        """Every op of the flow, in reading order."""
        raise NotImplementedError

    async def run(self, app: Any, /, **request: Any) -> FlowResponse:
        """Run on a `ToolMemApp`: `await (A() >> B()).run(app, workspace_id="team", ...)`.

        Raises RequestError before anything runs where the request does not hold what the ops read.
        """
        response: FlowResponse = await app.execute(self, request)
        return response


class _Composed(Node):
    """Two or more parts. Parts of the same kind are taken in, so that `(a >> b) >> c` equals `a >> (b >> c)`."""

    sign: ClassVar[str]

    def __init__(self, *parts: Node) -> None:
        taken_in: list[Node] = []
        for part in parts:
            if type(part) is type(self):
                taken_in.extend(part.parts)
            else:
                taken_in.append(part)
        if len(taken_in) < 2:
            raise ConfigError(f"a {type(self).__name__.lower()} flow needs two parts or more")
        self.parts: tuple[Node, ...] = tuple(taken_in)

    def ops(self) -> Iterator[Op]:
        for part in self.parts:
            yield from part.ops()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Composed) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((type(self), self.parts))

    def __repr__(self) -> str:
        return str(self)


class Sequential(_Composed):
    """One after the other; an op finds what the earlier ones left."""

    sign = " >> "

    def __str__(self) -> str:
        return self.sign.join(f"({part})" if isinstance(part, Parallel) else str(part) for part in self.parts)


class Parallel(_Composed):
    """Side by side; no branch finds what another one leaves."""

    sign = " | "

    def __str__(self) -> str:
        return self.sign.join(str(part) for part in self.parts)


class Op(Node):
    """One step of a flow. A subclass declares what it reads and leaves, and writes `execute`.

        class CountCallsOp(Op):
            class Params(OpParams):
                at_least: int = 1

            reads = ("tool_call_results",)
            leaves = ("count",)

            async def execute(self, context: Context) -> None:
                context["count"] = len(context["tool_call_results"])

    An op keeps no state between runs: one instance may run in several flows at once.
    """

    Params: ClassVar[type[OpParams]] = OpParams
    reads: ClassVar[tuple[str, ...]] = ()  # keys that must be in the request, or left by an earlier op
    optional: ClassVar[tuple[str, ...]] = ()  # keys that it uses where they are there
    leaves: ClassVar[tuple[str, ...]] = ()  # keys that it leaves for later ops
    asks_model: ClassVar[bool] = False  # its model must be within reach before a run begins
    asks: ClassVar[Literal["judge", "writer"]] = "judge"  # for what; one of its own needs no model
    name: ClassVar[str] = "op"  # the name in configurations: the class name in snake_case

    key: str  # the name in the configuration's `op` section: `name`, or an alias
    params: Any  # an instance of `Params`
    settings: OpSettings
    given: dict[str, Any]  # what it was made with, unchecked

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = snake_case(cls.__name__)
        for declared in ("reads", "optional", "leaves"):
            if isinstance(getattr(cls, declared), str):
                raise TypeError(f"{cls.__name__}.{declared} is a tuple of keys, not one text")
        taken = sorted(set(cls.Params.model_fields) & set(SETTING_NAMES))
        if taken:
            raise TypeError(f"{cls.__name__}.Params: every op has {', '.join(taken)} already; choose another name")

    def __init__(self, **given: Any) -> None:
        """Params and settings by name; opens nothing.

        Raises ConfigError with every problem: unknown names (with the nearest), wrong types, values out of range.
        """
        self._check(given, self.name, SETTING_NAMES, None)

    def _check(self, given: dict[str, Any], key: str, also_known: tuple[str, ...], place: Placing | None) -> None:
        of_all = {name: value for name, value in given.items() if name in SETTING_NAMES}
        own = {name: value for name, value in given.items() if name not in SETTING_NAMES}
        settings, problems = check(OpSettings, of_all, prefix=("op", key), place=place)
        params, more = check(self.Params, own, prefix=("op", key, "params"), place=place, also_known=also_known)
        if settings is None or params is None:
            raise ConfigError([*problems, *more])
        self.key = key
        self.params = params
        self.settings = settings
        self.given = given

    @abstractmethod
    async def execute(self, context: Context) -> None:
        """Read from the context, do the work, leave what is declared, and say in `context.response` what was done."""
        raise NotImplementedError

    def under(self, key: str) -> Op:
        """This op as the configuration's entry `key`."""
        self.key = key
        return self

    def ops(self) -> Iterator[Op]:
        yield self

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, Op)
            and (self.key, self.params, self.settings) == (other.key, other.params, other.settings)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __str__(self) -> str:
        label = type(self).__name__ if self.key == snake_case(type(self).__name__) else self.key
        return f"{label}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"

    def __repr__(self) -> str:
        return str(self)


def configured_op(op_class: type[Op], key: str, given: Mapping[str, Any], place: Placing) -> Op:
    """The op as the configuration's entry `key`; `place` says where a value came from. Raises ConfigError."""
    op = op_class.__new__(op_class)
    op._check(dict(given), key, (), place)
    return op


# ---------------------------------------------------------------- what an op works with


class Context:
    """One op's view of a run. All ops of a run share the data and the response.

    `context[key]` and `context.get(key)` read the request and what earlier ops left; `context[key] = value` leaves
    something for later ops, and only what the op declares in `leaves`, so that the checks made before the run hold.
    """

    def __init__(
        self,
        *,
        flow: str,
        op: Op,
        services: Services,
        response: FlowResponse,
        data: dict[str, Any],
        meter: Meter,
        report: OpReport,
        emit: Callable[[Event], None],
        started: float,
    ) -> None:
        self.flow = flow
        self.op = op
        self.services = services
        self.response = response
        self.meter = meter
        self._data = data
        self._report = report
        self._emit = emit
        self._started = started  # of the op, on the services' clock

    @property
    def workspace(self) -> str:
        workspace: str = self["workspace_id"]
        return workspace

    def __getitem__(self, key: str) -> Any:
        try:
            return self._data[key]
        except KeyError:
            raise KeyError(f"{self.op.key}: neither the request nor an earlier op holds {key!r}") from None

    def get(self, key: str, default: Any = None) -> Any:
        return self._data.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self.op.leaves:
            raise TypeError(
                f"{self.op.key} leaves {key!r} without declaring it: add it to {type(self.op).__name__}.leaves"
            )
        self._data[key] = value

    def purpose(self, tool: str) -> Purpose:
        """On whose behalf a request to a model is made; it is booked with this op's meter."""
        return Purpose(workspace=self.workspace, flow=self.flow, op=self.op.key, tool=tool, meter=self.meter)

    def progress(self, done: int, total: int, message: str = "") -> None:
        """Tell the listeners how far the op is."""
        seconds = self.services.clock.monotonic() - self._started
        self._emit(Event("progress", self.flow, self.op.key, done=done, total=total, message=message, seconds=seconds))

    def notice(self, text: str) -> None:
        """Tell whoever watches the run something before it goes on (what the next step will cost)."""
        seconds = self.services.clock.monotonic() - self._started
        self._emit(Event("notice", self.flow, self.op.key, message=text, seconds=seconds))

    def note(self, text: str) -> None:
        """A line for the run report (a skip and its reason, a policy's decision)."""
        self._report.notes.append(text)

    def detail(self, kind: str, **row: Any) -> None:
        """A row of JSON for the run report, for those who sum up many runs (what was decided about a tool, and why)."""
        self._report.details.append({"kind": kind, **row})

    def save(self, saved: Usage) -> None:
        """Book what was not sent because it was not needed: `saved_requests` and `saved_prompt_tokens` of `saved`."""
        self._report.usage.saved_requests += saved.saved_requests
        self._report.usage.saved_prompt_tokens += saved.saved_prompt_tokens

    @property
    def usage(self) -> Usage:
        """What this op has sent and saved so far (a copy)."""
        return self._report.usage.model_copy()
