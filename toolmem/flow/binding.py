"""Makes an op of the configuration: class default < `op.<key>` < literal in the expression < dotted override."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolmem.config.cross_checks import SOCKETS, no_entry
from toolmem.config.layers import CLASS_DEFAULT, OVERRIDE
from toolmem.config.loading import Loaded
from toolmem.config.problems import placed
from toolmem.config.settings import OpEntry
from toolmem.config.sockets import BY_OP_SETTING
from toolmem.errors import ConfigError
from toolmem.flow.expression import Call
from toolmem.flow.op import SETTING_NAMES, Op, configured_op

LITERAL = "literal in flow "  # origin: this and the flow's name
PYTHON = "given in Python"  # origin of what an op was made with


@dataclass(frozen=True)
class Value:
    """A value and where it came from."""

    value: Any
    origin: str


@dataclass
class BoundOp:
    """One op of one flow: every param and setting with its origin."""

    key: str
    flow: str
    values: dict[str, Value]  # by the name below `op.<key>`: `params.x`, `llm`


class Binder:
    """Makes ops from the configuration's values and an expression's literals."""

    def __init__(self, loaded: Loaded) -> None:
        self.bound: list[BoundOp] = []
        self._loaded = loaded
        self._settings = loaded.settings

    def op_of(self, call: Call, flow: str) -> Op:
        """`flow`: whose expression it stands in, "" for none. Raises ConfigError with every problem."""
        literal = f"{LITERAL}{flow}" if flow else PYTHON
        given = self._given(call, literal)

        def place(path: tuple[str, ...]) -> str:
            if path[-1] in given and given[path[-1]].origin == literal:
                return f"{literal}, line {call.line}, column {call.column}" if flow else ""
            return self._loaded.place(path)

        problems = self._dangling(call.key, given, literal)
        try:
            op = configured_op(call.op_class, call.key, {name: each.value for name, each in given.items()}, place)
        except ConfigError as error:
            raise ConfigError([*error.problems, *problems]) from None
        if problems:
            raise ConfigError(problems)
        if flow:
            self.bound.append(BoundOp(call.key, flow, _all_values(op, given)))
        return op

    def _given(self, call: Call, literal: str) -> dict[str, Value]:
        """Params and settings that somebody has given, by name."""
        entry = self._settings.op.get(call.key, OpEntry())
        settings = {name: getattr(entry, name) for name in SETTING_NAMES if name in entry.model_fields_set}
        given = {name: Value(each, self._origin(("op", call.key, name))) for name, each in settings.items()}
        for name, each in entry.params.items():
            given[name] = Value(each, self._origin(("op", call.key, "params", name)))
        for name, each in call.literals.items():
            if name not in given or given[name].origin != OVERRIDE:
                given[name] = Value(each, literal)
        if "language" not in given and self._settings.language:
            given["language"] = Value(self._settings.language, self._loaded.origins.of(("language",)))
        return given

    def _origin(self, path: tuple[str, ...]) -> str:
        origins = self._loaded.origins.all_of(path)
        came_from = OVERRIDE if OVERRIDE in origins else self._loaded.origins.of(path)
        return came_from if came_from != CLASS_DEFAULT or not origins else min(origins)

    def _dangling(self, key: str, given: Mapping[str, Value], literal: str) -> list[str]:
        """What is given and leads nowhere.

        Literals that name an llm, an embedding model or a store that there is not; judges and writers that are neither
        handed over, registered nor installed.
        """
        problems: list[str] = []
        for section in SOCKETS:
            chosen = given.get(section, Value("default", CLASS_DEFAULT))
            if chosen.origin in (literal, CLASS_DEFAULT):
                problems += no_entry(self._settings, f"op.{key}", section, str(chosen.value))
        for setting, socket in BY_OP_SETTING.items():
            name = str(given[setting].value) if setting in given else ""
            handed = self._loaded.handed.get(setting, ())
            if name not in ("", "default", *handed) and socket.find(name) is None:
                place = placed(self._loaded.place, ("op", key, setting))
                problems.append(f"op.{key}.{setting}: {socket.unknown(name, handed)}{place}")
        return problems


def _all_values(op: Op, given: Mapping[str, Value]) -> dict[str, Value]:
    def value(name: str, of: Any) -> Value:
        return Value(getattr(of, name), given[name].origin if name in given else CLASS_DEFAULT)

    values = {name: value(name, op.settings) for name in SETTING_NAMES}
    return values | {f"params.{name}": value(name, op.params) for name in type(op.params).model_fields}
