"""Dataclasses that answer what pydantic's models answer, for code that has no time to import those."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any, Literal, Self, get_args

from toolmem.late_dataclasses import annotations_of, replace

_Reader = Callable[[Any], Any]
_MOST_COUNTED = 10**15


class Row:
    """A dataclass, with the methods of a model."""

    __slots__ = ()

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """From an object of JSON; other keys are passed over. Raises ValueError that names the field."""
        if isinstance(value, cls):
            return value
        if type(value) is not dict and not isinstance(value, Mapping):
            raise ValueError(f"expected an object, got {type(value).__name__}")
        known = _READERS_OF.get(cls) or _readers(cls)
        try:
            return cls(
                **{
                    name: each if (reader := known[name]) is _text and type(each) is str else reader(each)
                    for name, each in value.items()
                    if name in known
                }
            )
        except (ValueError, TypeError):
            raise ValueError(cls._problem(value)) from None

    @classmethod
    def _problem(cls, value: Mapping[str, Any]) -> str:
        for name, reader in _readers(cls).items():
            try:
                reader(value.get(name)) if name in value else None
            except ValueError as error:
                return f"{name}: {error}"
        return f"{next(iter(sorted(_required(cls) - value.keys())), '')}: is missing"

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        return replace(self, **(update or {}))  # type: ignore[type-var]  # each row is a dataclass

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
    ) -> dict[str, Any]:
        left_out = exclude or ()
        shown = [name for name in _readers(type(self)) if (include is None or name in include) and name not in left_out]
        return {name: _dumped(getattr(self, name), mode == "json") for name in shown}

    def model_dump_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))


def _readers(cls: type[Row]) -> dict[str, _Reader]:
    """By field, what reads a value of its annotation; raises ValueError where the value is none of its kind."""
    known = _READERS_OF.get(cls)
    if known is None:
        known = _READERS_OF[cls] = {}
        for name, annotation in annotations_of(cls).items():
            kind, _, optional = annotation.partition(" | ")
            known[name] = _or_none(READERS[kind]) if optional else READERS[kind]
    return known


def _required(cls: type[Row]) -> set[str]:
    from dataclasses import MISSING, fields

    known = fields(cls)  # type: ignore[arg-type]  # each row is a dataclass
    return {each.name for each in known if each.default is MISSING and each.default_factory is MISSING}


def _dumped(value: Any, as_json: bool) -> Any:
    if isinstance(value, Row):
        return value.model_dump(mode="json" if as_json else "python")
    if isinstance(value, list | dict):
        return own_json(value)
    if as_json and isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


def own_json(value: Any) -> Any:
    """A copy of a value of JSON that nobody else changes."""
    if type(value) is dict:
        return {name: own_json(each) for name, each in value.items()}
    if type(value) is list:
        return [own_json(each) for each in value]
    return value if isinstance(value, str | int | float | None) else deepcopy(value)


# ---------------------------------------------------------------- reading values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list of texts, got {type(value).__name__}")
    return [_text(each) for each in value]


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise ValueError(f"expected a time, e.g. 2026-01-31T12:00:00Z; got {value!r}"[:200]) from None


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_COUNTED:
        raise ValueError(f"expected a whole number from 0 to {_MOST_COUNTED:,}, got {value!r}"[:200])
    return value


def _sum(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return float(value)


def one_of(choices: Any) -> _Reader:
    """Reads one of the texts of a Literal."""
    allowed = {choice: choice for choice in get_args(choices)}

    def read(value: Any) -> Any:
        try:
            return allowed[value]
        except (KeyError, TypeError):
            raise ValueError(f"expected one of {', '.join(allowed)}; got {value!r}"[:200]) from None

    return read


def _or_none(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


_READERS_OF: dict[Any, dict[str, _Reader]] = {}
READERS: dict[str, _Reader] = {  # by annotation, as it is written
    "str": _text,
    "list[str]": _texts,
    "int": _count,
    "float": _sum,
    "datetime": _time,
    "dict[str, Any]": dict,
}
