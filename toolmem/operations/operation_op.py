"""Operations in flows: an op that runs any operation, and settings of the flows of operations."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from toolmem.config.layers import Layer, Setting
from toolmem.config.names import hint
from toolmem.errors import ConfigError, RequestError
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.flow.op import Context, Op, register
from toolmem.models.calls import with_all_fields
from toolmem.models.decisions import Decision
from toolmem.models.tools import FlowResponse
from toolmem.operations.operation import OPERATIONS, Operation
from toolmem.rules.changes import PROGRAM


@register
class OperationOp(Op):
    """Run an operation on the request of the flow: `OperationOp(operation="check_tool_call")`.

    The result becomes `metadata.result` of the response. A decision becomes `metadata.decision`,
    and its reason the answer.
    """

    class Params(Struct, frozen=True):
        operation: str

    params: Params

    def _operation(self) -> Operation:
        """Raises ConfigError if there is no operation with this name."""
        name = self.params.operation
        if name not in OPERATIONS:
            problem = f"op.{self.key}.params.operation: {name!r} ({hint(name, OPERATIONS)})"
            raise ConfigError([problem])
        return OPERATIONS[name]

    def _names(self, *, needed: bool) -> tuple[str, ...]:
        parameters = self._operation().signature.parameters.values()
        return tuple(each.name for each in parameters if (each.default is each.empty) == needed)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return (WORKSPACE_KEY, *self._names(needed=True))

    @property
    def optional(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._names(needed=False)

    def run(self, context: Context) -> None:
        operation = self._operation()
        given = {name: context.get(name) for name in operation.signature.parameters}
        result = operation.run(_FlowMemory(context), operation.read(given))
        is_decision = isinstance(result, Decision)
        name = "decision" if is_decision else "result"
        context.response.metadata[name] = with_all_fields(result)
        context.response.answer = result.reason if is_decision else ""


class _FlowMemory:
    """Implements `toolmem.flow.services.Memory` for the workspace of a run."""

    actor = PROGRAM

    def __init__(self, context: Context) -> None:
        self.services = context.services
        self.workspace_name = context.workspace

    def run_flow(self, flow: str, **request: Any) -> FlowResponse:
        raise RequestError(f"operation: {flow!r} is a flow itself; name its ops", "operation")


def flow_settings() -> Layer:
    """Make settings for the flows of operations: their `description` and `input_schema`."""
    layer: Layer = {}
    for operation in OPERATIONS.values():
        if operation.flow:
            flow = ("flow", operation.flow)
            origin = f"operation {operation.name}"
            layer[*flow, "description"] = Setting(operation.summary, origin)
            schema = operation.schema()
            for name, argument in schema["properties"].items():
                kinds = argument.get("anyOf", [argument])
                path = (*flow, "input_schema", name)
                layer[*path, "type"] = Setting(kinds[0].get("type", "object"), origin)
                layer[*path, "description"] = Setting(argument["description"], origin)
                layer[*path, "required"] = Setting(name in schema["required"], origin)
    return layer
