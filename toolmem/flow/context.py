"""What an op works with: the request, what earlier ops left, services, the response."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from toolmem.flow.events import Event
from toolmem.models import FlowResponse, Usage
from toolmem.protocols import Meter, Purpose, Services

if TYPE_CHECKING:
    from toolmem.flow.op import Op
    from toolmem.flow.report import OpReport


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
