"""Binds the flows of a configuration: reads their expressions, makes their ops, checks that they fit."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolmem.config.cross_checks import SOCKETS
from toolmem.config.layers import CLASS_DEFAULT, OVERRIDE
from toolmem.config.loading import Loaded, read
from toolmem.config.nearest_names import hint
from toolmem.config.problems import added_to, placed
from toolmem.config.reme_compat import absent_ops, not_provided
from toolmem.config.settings import Argument, Settings
from toolmem.errors import ConfigError, FlowSyntaxError
from toolmem.flow.binding import Binder, BoundOp
from toolmem.flow.checks import check_flow
from toolmem.flow.expression import Call, parse
from toolmem.flow.op import Node, Op, Parallel, Sequential, snake_case
from toolmem.flow.registry import OpRegistry, known_ops

FLOW_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

log = logging.getLogger("toolmem.flow")


@dataclass
class Configured:
    """Settings, flows ready to run, and what was left out and why."""

    settings: Settings
    flows: dict[str, Node]
    left_out: dict[str, str]  # flow -> what to answer when it is asked for
    loaded: Loaded
    bound: list[BoundOp] = field(default_factory=list)

    def input_schema(self, flow: str) -> Mapping[str, Argument]:
        return self.settings.flow[flow].input_schema

    def bind(self, node: Node) -> Node:
        """A flow composed in Python, with the configuration behind it: what an op was made with counts as literal.

        Raises ConfigError where the configuration does not fit an op that was not part of it.
        """
        binder = Binder(self.loaded)
        problems: list[str] = []

        def bound(here: Node) -> Node:
            if isinstance(here, Sequential | Parallel):
                return type(here)(*[bound(part) for part in here.parts])
            assert isinstance(here, Op)
            with added_to(problems):
                return binder.op_of(Call(here.key, type(here), dict(here.given)), "")
            return here

        made = bound(node)
        if problems:
            raise ConfigError(problems)
        return made


def configure(
    files: Sequence[str | Path] = (),
    overrides: Sequence[str] = (),
    ops: Mapping[str, type[Op]] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    dotenv: str | Path | None = ".env",
    described: Mapping[str, Mapping[str, Any]] | None = None,
    handed: Mapping[str, Collection[str]] | None = None,
) -> Configured:
    """Load the configuration and bind every flow in it.

    `ops`: op classes by name (default: those of this process). `described`: as for `load`. `handed`: names of judges
    and writers (by setting) that the caller hands over.

    Raises ConfigError with all problems at once: of files, sections, flow expressions, params, overrides that nothing
    uses, and of ops that would not find what they read.
    """
    classes = known_ops() if ops is None else ops
    defined = classes.register_defined if isinstance(classes, OpRegistry) else None
    loaded = read(files, overrides, env=env, dotenv=dotenv, provided=classes, described=described, imported=defined)
    loaded.handed = handed or {}
    work = _Configuring(loaded, classes)
    configured = work.whole()
    if work.problems:
        raise ConfigError(list(dict.fromkeys(work.problems)))
    for warning in loaded.warnings:
        log.warning(warning)
    return configured


class _Configuring:
    def __init__(self, loaded: Loaded, classes: Mapping[str, type[Op]]) -> None:
        self.problems = list(loaded.problems)
        self._loaded = loaded
        self._settings = loaded.settings
        self._classes = classes
        self._binder = Binder(loaded)
        self._ops: dict[str, type[Op]] = {}  # by the keys that flows may use
        self._used: set[str] = set()
        self._unreadable: list[str] = []  # problems of expressions, told before those of their ops
        self._left_out: dict[str, str] = {}

    def whole(self) -> Configured:
        self._find_classes()
        self._check_flow_names()
        told = len(self.problems)
        flows = {name: flow for name in self._settings.flow if (flow := self._flow(name)) is not None}
        self.problems[told:told] = self._unreadable
        self._check_unused_entries()
        self._check_overrides()
        self._warn_of_left_out()
        self._select(flows)
        return Configured(self._settings, flows, self._left_out, self._loaded, self._binder.bound)

    def _find_classes(self) -> None:
        """The registered ops under their names, and the configuration's entries under their keys."""
        self._ops.update({name: self._classes[name] for name in self._classes})
        for key, entry in self._settings.op.items():
            if not key.isidentifier():
                place = self._placed(("op", key))
                self.problems.append(f"op.{key}: not a name that flow_content can use: letters, digits and _{place}")
                continue
            backend = entry.backend or key
            op_class = self._classes.get(backend)
            if op_class is not None:
                self._ops[key] = op_class
                continue
            if not entry.backend and self._loaded.origins.all_of(("op", key)) == {OVERRIDE}:
                continue  # reported as an override that nothing uses
            where = f"op.{key}.backend" if entry.backend else f"op.{key}"
            place = self._placed(("op", key, "backend") if entry.backend else ("op", key))
            self.problems.append(f"{where}: no op is called {backend!r} ({self._hint(backend)}){place}")

    def _check_flow_names(self) -> None:
        """A flow's name is a part of an address, and the name of a tool that an agent is offered."""
        self.problems += [
            f"flow.{name}: expected letters, digits, _ or - (64 at most, a letter first){self._placed(('flow', name))}"
            for name in self._settings.flow
            if not FLOW_NAME.fullmatch(name)
        ]

    def _hint(self, name: str) -> str:
        return hint(name, self._classes) + _broken(self._classes)

    def _placed(self, path: tuple[str, ...]) -> str:
        return placed(self._loaded.place, path)

    def _flow(self, name: str) -> Node | None:
        """None where it has problems, or uses ops of another toolkit."""
        absent: dict[str, None] = {}
        used: set[str] = set()
        bound = len(self._binder.bound)

        def unknown(op: str) -> str | None:
            key = op if op in self._loaded.absent_ops else snake_case(op)
            missing = self._loaded.absent_ops.get(key) or (key if key in absent_ops() else None)
            if missing is None:
                return None
            absent[missing] = None
            return not_provided(missing)

        def make(call: Call) -> Op:
            used.add(call.key)
            return self._binder.op_of(call, name)

        content = self._settings.flow[name].flow_content
        source = f"flow.{name}.flow_content"
        where = source + self._placed(("flow", name, "flow_content"))
        problems: list[str] = []
        flow = None
        try:
            flow = parse(content, _Lookup(self._ops, self._classes), source=where, make=make, unknown=unknown)
            held = self._settings.flow[name].input_schema
            problems = [f"{source}: {problem}" for problem in check_flow(flow, held, ops=self._classes)]
        except FlowSyntaxError as error:
            if absent:
                self._left_out[name] = not_provided(", ".join(absent))
                del self._binder.bound[bound:]
            else:
                self._unreadable += error.problems
            return None
        except ConfigError as error:
            problems = error.problems
        self._used |= used
        self.problems += problems
        return None if problems else flow

    def _check_unused_entries(self) -> None:
        """Params of entries that no flow uses are checked all the same."""
        for key in self._settings.op:
            if key in self._ops and key not in self._used:
                with added_to(self.problems):
                    self._binder.op_of(Call(key, self._ops[key]), "")

    def _check_overrides(self) -> None:
        for override in self._loaded.overrides:
            section, *names = override.path
            if not names:
                continue
            key = names[0]
            if section == "op":
                self._check_op_override(override.name, key)
            elif section in SOCKETS:
                entries: Mapping[str, Any] = getattr(self._settings, section)
                defined = self._loaded.origins.of((section, key, "backend")) != CLASS_DEFAULT
                if key in entries and not defined:
                    others = [name for name in entries if name != key]
                    self.problems.append(
                        f"override {override.name}: nothing uses {section} {key!r} ({hint(key, others)}); "
                        f"to define it, give its backend"
                    )
                elif key in entries and key not in (used := self._names_in_use(section)):
                    self.problems.append(
                        f"override {override.name}: nothing uses {section} {key!r} ({hint(key, used)})"
                    )

    def _names_in_use(self, section: str) -> set[str]:
        """The entries of a section of backends that a flow, an op entry, a store or the caller names."""
        used = {"default"}
        used |= {str(bound.values[section].value) for bound in self._binder.bound if section in bound.values}
        used |= {name for entry in self._settings.op.values() if (name := getattr(entry, section))}
        if section == "embedding_model":
            used |= {store.embedding_model for store in self._settings.vector_store.values()}
        return used

    def _check_op_override(self, name: str, key: str) -> None:
        if key in self._loaded.absent_ops:
            self.problems.append(f"override {name}: {not_provided(self._loaded.absent_ops[key])}")
        elif key not in self._used and not (self._unreadable and key in self._ops):
            self.problems.append(f"override {name}: no flow uses an op {key!r} ({hint(key, self._used)})")

    def _warn_of_left_out(self) -> None:
        parts = []
        if self._left_out:
            parts.append("flows " + ", ".join(self._left_out))
        if self._loaded.absent_ops:
            parts.append("op entries " + ", ".join(self._loaded.absent_ops))
        if parts:
            self._loaded.warnings.append(
                f"left out: {'; '.join(parts)} (they use ops of other memories that toolmem does not have)"
            )

    def _select(self, flows: dict[str, Node]) -> None:
        """`enabled_flows` and `disabled_flows`."""
        named = {"enabled_flows": self._settings.enabled_flows, "disabled_flows": self._settings.disabled_flows}
        for key, names in named.items():
            self.problems += [
                f"{key}: no flow is called {name!r} ({hint(name, self._settings.flow)})"
                for name in names
                if name not in self._settings.flow
            ]
        for name in list(flows):
            enabled, disabled = named["enabled_flows"], named["disabled_flows"]
            by = "disabled_flows" if name in disabled else "enabled_flows" if enabled and name not in enabled else None
            if by is not None:
                del flows[name]
                self._left_out[name] = f"the flow {name!r} is switched off by {by}"


class _Lookup(Mapping[str, type[Op]]):
    """Keys of the configuration first, then the registry, which looks at entry points for a name it does not know."""

    def __init__(self, keys: Mapping[str, type[Op]], classes: Mapping[str, type[Op]]) -> None:
        self._keys = keys
        self._classes = classes

    def __getitem__(self, name: str) -> type[Op]:
        return self._keys[name] if name in self._keys else self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._keys, **dict.fromkeys(self._classes)})

    def __len__(self) -> int:
        return len({*self._keys, *self._classes})


def _broken(classes: Mapping[str, type[Op]]) -> str:
    broken = getattr(classes, "broken", {})
    return "".join(f"; the entry point {name!r} could not be loaded: {why}" for name, why in broken.items())
