"""What the flow operations answer: the flow's answer, with its parts as typed values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from toolmem.models import FlowResponse, ToolMemory, ToolMemoryRule, Usage

T = TypeVar("T")


class Failure(BaseModel):
    """What could not be done of a request."""

    error: str
    tool_name: str = ""
    index: int | None = None  # of the record in the request, from 0


class Answer(FlowResponse):
    """An answer with its parts. `success`: everything asked for was done, or was done already."""

    @classmethod
    def of(cls, answer: FlowResponse) -> Self:
        """The same answer, typed."""
        return cls(answer=answer.answer, success=answer.success, metadata=answer.metadata)

    @property
    def partial(self) -> bool:
        """Some of it was done, some was not."""
        return bool(self.metadata.get("partial", False))

    @property
    def usage(self) -> Usage:
        """What models were asked for it, and what was saved."""
        return Usage.model_validate(self.metadata.get("usage", {}))

    @property
    def failures(self) -> list[Failure]:
        """What could not be done, in the order of the request."""
        told = self.metadata.get("evaluation", self.metadata).get("failures", [])
        return [_failure(each) for each in told]


class Listed(list[T]):
    """A list with the answer that it came in."""

    def __init__(self, values: Iterable[T] = (), answer: FlowResponse | None = None) -> None:
        super().__init__(values)
        self.response = Answer() if answer is None else Answer.of(answer)

    @property
    def answer(self) -> str:
        """What was done, in words."""
        return self.response.answer

    @property
    def success(self) -> bool:
        """Everything asked for was done or found."""
        return self.response.success

    @property
    def metadata(self) -> dict[str, Any]:
        """The answer's details, as the flow gave them."""
        return self.response.metadata

    @property
    def usage(self) -> Usage:
        """What models were asked for it, and what was saved."""
        return self.response.usage


class Memories(Listed[ToolMemory]):
    """Tool memories, in the order of the answer."""

    @classmethod
    def of(cls, answer: FlowResponse) -> Self:
        """From the answer of a flow that has a `memory_list`."""
        return cls([ToolMemory.model_validate(each) for each in answer.metadata.get("memory_list", [])], answer)

    @property
    def not_found(self) -> list[str]:
        """Tools that were asked for by name and have no memory."""
        return [str(name) for name in self.metadata.get("not_found", [])]


def rules_of(answer: FlowResponse) -> list[ToolMemoryRule]:
    """The rules in an answer."""
    return [ToolMemoryRule.model_validate(each) for each in answer.metadata.get("rules", [])]


def _failure(told: Any) -> Failure:
    if not isinstance(told, dict):
        return Failure(error=str(told))
    where = str(told.get("tool_name", told.get("op", "")))
    return Failure(error=str(told.get("error", "")), tool_name=where, index=told.get("index"))
