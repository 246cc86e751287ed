"""Makes an op of the configuration: class default < `op.<key>` < literal in the expression < dotted override."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolmem.config.layers import CLASS_DEFAULT, OVERRIDE
from toolmem.config.loading import Loaded
from toolmem.config.names import hint
from toolmem.config.settings import OpEntry, Settings
from toolmem.config.sockets import BY_OP_SETTING
from toolmem.errors import ConfigError
from toolmem.flow.expression import Call
from toolmem.flow.op import SETTING_NAMES, Op, check_params, split_given

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

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        self.bound: list[BoundOp] = []
        self._loaded = loaded
        self._settings = settings

    def op_of(self, call: Call, flow: str, problems: list[str], *, record: bool = True) -> Op | None:
        literal_settings, literal_params = split_given(call.literals)
        entry = self._settings.op.get(call.key, OpEntry())
        literal = f"{LITERAL}{flow}" if flow else PYTHON
        params = self._merged(call.key, ("params",), entry.params, literal_params, literal)
        self._pass_over(call, params)
        settings = self._merged(call.key, (), _given_settings(entry), literal_settings, literal)
        if "language" not in settings and self._settings.language:
            settings["language"] = Value(self._settings.language, self._loaded.origins.of(("language",)))

        def place(path: tuple[str, ...]) -> str:
            name = path[3] if len(path) > 3 else ""
            if name in params and params[name].origin == literal:
                return f"{literal}, line {call.line}, column {call.column}" if flow else ""
            return self._loaded.place(path)

        found = len(problems)
        values = {name: value.value for name, value in params.items()}
        _, wrong = check_params(call.op_class, call.key, values, place=place)
        problems += wrong
        problems += self._dangling(call.key, settings, literal)
        if len(problems) > found:
            return None
        try:
            op = call.op_class(**{name: value.value for name, value in {**settings, **params}.items()}).under(call.key)
        except ConfigError as error:
            problems += error.problems
            return None
        if record:
            self.bound.append(BoundOp(call.key, flow, _all_values(op, params, settings)))
        return op

    def _merged(
        self, key: str, below: tuple[str, ...], configured: Mapping[str, Any], literals: Mapping[str, Any], origin: str
    ) -> dict[str, Value]:
        merged: dict[str, Value] = {}
        for name, value in configured.items():
            path = ("op", key, *below, name)
            origins = self._loaded.origins.all_of(path)
            came_from = OVERRIDE if OVERRIDE in origins else self._loaded.origins.of(path)
            merged[name] = Value(value, came_from if came_from != CLASS_DEFAULT or not origins else min(origins))
        for name, value in literals.items():
            if name not in merged or merged[name].origin != OVERRIDE:
                merged[name] = Value(value, origin)
        return merged

    def _pass_over(self, call: Call, params: dict[str, Value]) -> None:
        """Params of a choice that a stronger place has changed are left out, with a warning.

        So that one override switches a tuned file. Where both stand in one place the class refuses them.
        """
        for name, (chooser, wanted) in call.op_class.only_with.items():
            if name not in params or chooser not in params or params[chooser].value == wanted:
                continue
            if _strength(params[chooser].origin) > _strength(params[name].origin):
                warning = (
                    f"op.{call.key}.params.{name} ({params.pop(name).origin}) is passed over: it belongs to "
                    f"{chooser}={wanted}, and {params[chooser].origin} says {chooser}={params[chooser].value}"
                )
                if warning not in self._loaded.warnings:
                    self._loaded.warnings.append(warning)

    def _dangling(self, key: str, settings: Mapping[str, Value], literal: str) -> list[str]:
        """Literals that name an llm, an embedding model or a store that there is not."""
        problems = []
        for kind in ("llm", "embedding_model", "vector_store"):
            there: Mapping[str, Any] = getattr(self._settings, kind)
            chosen = settings[kind] if kind in settings else Value("default", CLASS_DEFAULT)
            if chosen.origin in (literal, CLASS_DEFAULT) and chosen.value not in there:
                problems.append(
                    f"op.{key}.{kind}: no {kind} is called {chosen.value!r} ({hint(str(chosen.value), there)})"
                )
        return [*problems, *self._unknown_own(key, settings)]

    def _unknown_own(self, key: str, settings: Mapping[str, Value]) -> list[str]:
        """Judges and writers that are neither handed over, registered nor installed."""
        problems = []
        for setting, socket in BY_OP_SETTING.items():
            chosen = str(settings[setting].value) if setting in settings else ""
            there = self._loaded.handed.get(setting, ())
            if chosen not in ("", "default", *there) and socket.find(chosen) is None:
                place = self._loaded.place(("op", key, setting))
                problems.append(f"op.{key}.{setting}: {socket.unknown(chosen, there)}{f' [{place}]' if place else ''}")
        return problems


def _strength(origin: str) -> int:
    """Of the places that `Binder` knows the order of: files, expressions, overrides."""
    if origin == OVERRIDE:
        return 2
    return int(origin.startswith(LITERAL) or origin == PYTHON)


def _given_settings(entry: OpEntry) -> dict[str, Any]:
    """What an `op.<key>` entry sets; `""` and null are not set."""
    return {name: value for name in SETTING_NAMES if (value := getattr(entry, name)) not in ("", None)}


def _all_values(op: Op, params: Mapping[str, Value], settings: Mapping[str, Value]) -> dict[str, Value]:
    values = {
        name: Value(getattr(op.settings, name), settings[name].origin if name in settings else CLASS_DEFAULT)
        for name in SETTING_NAMES
    }
    for name in type(op.params).model_fields:
        origin = params[name].origin if name in params else CLASS_DEFAULT
        values[f"params.{name}"] = Value(getattr(op.params, name), origin)
    return values
