"""Labels that a recording keeps beside its calls, read as scores: 0.0 failed, 1.0 did not fail, None not known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolmem.errors import RequestError
from toolmem.models import ToolCallResult

_COLUMN = re.compile(r"(?P<name>.*?)(?:(?P<sign>[<>:])(?P<value>.*))?", re.DOTALL)
_ABOUT_FAILURE = re.compile(r"fail|error|wrong|mistake|invalid", re.IGNORECASE)
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class RecordedFlag:
    """The recorded success flag."""

    @property
    def reading(self) -> str:
        return "that the recorded success flag is false"

    def score(self, call: ToolCallResult) -> float | None:
        return None if call.success is None else float(call.success)

    def words(self, call: ToolCallResult) -> str:
        return "" if call.success is None else f"success = {str(call.success).lower()}"


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """A field of `metadata` (or, with dots, inside it), and when it says that the call failed.

    `NAME<X` and `NAME>X`: where the number is below or above X. `NAME:TEXT`: where it is this text. `NAME` alone: a
    number below 0.5, or false, failed; the other way round where the name speaks of failure (fail, error, wrong,
    mistake, invalid).
    """

    name: str
    sign: Literal["", "<", ">", ":"] = ""
    value: str = ""

    @classmethod
    def read(cls, text: str) -> LabelColumn:
        """Raises RequestError."""
        found = _COLUMN.fullmatch(text)
        assert found is not None
        name, sign, value = found["name"].strip(), found["sign"] or "", (found["value"] or "").strip()
        if not name or (sign and not value):
            raise RequestError(
                f"column: expected NAME, NAME<NUMBER, NAME>NUMBER or NAME:TEXT, got {text!r}", field="judge"
            )
        if sign in ("<", ">"):
            try:
                float(value)
            except ValueError:
                raise RequestError(f"column:{text}: {value!r} is no number", field="judge") from None
        return cls(name, sign, value)  # type: ignore[arg-type]

    @property
    def reading(self) -> str:
        """When the call failed, in words."""
        field = f"metadata.{self.name}"
        if self.sign == ":":
            return f"that {field} is {self.value!r}"
        if self.sign:
            return f"that {field} is {'below' if self.sign == '<' else 'above'} {self.value}"
        if self._about_failure:
            return f"that {field} is true, or a number from {_HALF} up"
        return f"that {field} is false, or a number below {_HALF}"

    @property
    def _about_failure(self) -> bool:
        return _ABOUT_FAILURE.search(self.name) is not None

    def score(self, call: ToolCallResult) -> float | None:
        """None where the field is absent, null, or of a kind that this reading does not understand."""
        found = self._found(call)
        if found is None:
            return None
        if self.sign == ":":
            return float(str(found) != self.value)
        if isinstance(found, str) or not isinstance(found, int | float) or found != found:
            return None
        if not self.sign:
            return float((found < _HALF) == self._about_failure)
        failed = found < float(self.value) if self.sign == "<" else found > float(self.value)
        return float(not failed)

    def words(self, call: ToolCallResult) -> str:
        found = self._found(call)
        return "" if found is None else f"{self.name} = {found}"

    def _found(self, call: ToolCallResult) -> Any:
        inner: Any = call.metadata
        if self.name in inner:
            return inner[self.name]
        for part in self.name.split("."):
            if not isinstance(inner, Mapping) or part not in inner:
                return None
            inner = inner[part]
        return inner


Label = RecordedFlag | LabelColumn


def check_label(name: str, label: Label, calls: Iterable[ToolCallResult]) -> None:
    """Raises RequestError where not one call has this label."""
    fields: set[str] = set()
    for call in calls:
        if label.score(call) is not None:
            return
        fields.update(call.metadata)
    there = f"; metadata holds {', '.join(sorted(fields)[:30])}" if fields else "; the calls have no metadata"
    raise RequestError(f"{name}: no call has it in a form that can be read ({label.reading}){there}", field="judge")
