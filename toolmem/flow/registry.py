"""Which ops there are: toolmem's own, those that a program registers, those that installed packages bring."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TypeVar

from toolmem.config.sockets import origin
from toolmem.errors import ConfigError
from toolmem.flow.op import Op

log = logging.getLogger("toolmem.flow")

ENTRY_POINTS = "toolmem.ops"  # entry point group; each entry names an Op class

OpClass = TypeVar("OpClass", bound=type[Op])


class OpRegistry(Mapping[str, type[Op]]):
    """Op classes by name. Entry points are looked at when a name is asked for that is not known without them."""

    def __init__(self, group: str | None = None) -> None:
        self._group = group
        self._classes: dict[str, type[Op]] = {}
        self._lock = threading.RLock()
        self._looked = group is None
        self.broken: dict[str, str] = {}  # entry points that could not be loaded, and why

    def register(self, op_class: type[Op]) -> None:
        """Raises ConfigError where another class has the name; the same class defined again (a notebook) replaces."""
        if not (isinstance(op_class, type) and issubclass(op_class, Op)):
            raise ConfigError(f"register: expected a subclass of Op, got {op_class!r}")
        with self._lock:
            known = self._classes.get(op_class.name)
            if known is not None and origin(known) != origin(op_class):
                raise ConfigError(
                    f"register: an op {op_class.name!r} is known already ({origin(known)}); "
                    f"give {op_class.__name__} another name"
                )
            self._classes[op_class.name] = op_class

    def register_defined(self, module: ModuleType) -> None:
        """The op classes that a module defines, or takes in from modules below it. Raises ConfigError as `register`.

        A name that begins with _ and a base without `execute` are left alone.
        """
        for name, value in vars(module).items():
            if not (isinstance(value, type) and issubclass(value, Op)) or name.startswith("_"):
                continue
            own = value.__module__ == module.__name__ or value.__module__.startswith(f"{module.__name__}.")
            if own and value.execute is not Op.execute:
                self.register(value)

    def __getitem__(self, name: str) -> type[Op]:
        if name not in self._classes and not self._looked:
            self._load_entry_points()
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._classes))

    def __len__(self) -> int:
        return len(self._classes)

    def _load_entry_points(self) -> None:
        from importlib.metadata import entry_points

        with self._lock:
            if self._looked:
                return
            self._looked = True
            for entry in entry_points(group=self._group or ""):
                try:
                    self.register(entry.load())
                except Exception as error:
                    self.broken[entry.name] = f"{type(error).__name__}: {error}"
                    log.warning("the entry point %s = %s brings no op: %s", entry.name, entry.value, error)


_ops = OpRegistry(ENTRY_POINTS)


def register(op_class: OpClass) -> OpClass:
    """Make an op usable in configurations; also a decorator."""
    _ops.register(op_class)
    return op_class


def known_ops() -> OpRegistry:
    """The ops of this process, by name."""
    return _ops
