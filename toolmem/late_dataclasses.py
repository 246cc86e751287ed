"""Dataclasses whose methods are made when they are first used.

`dataclasses` writes and compiles the methods of each class at import: half a millisecond, of which a hook's process,
which uses few of the classes that it imports, has none to lose. To a type checker these are dataclasses, and so they
are to `dataclasses` itself (`fields`, `replace`, `asdict`) and to pydantic, who load it when they ask.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_FIELDS = "_late_fields_"  # name -> field, in the namespace of each such class

if TYPE_CHECKING:
    from dataclasses import KW_ONLY as KW_ONLY
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    from collections.abc import Callable, Mapping

    KW_ONLY = "KW_ONLY"

    class _Missing:
        """No default, and a parameter's that is left to a factory."""

        def __repr__(self) -> str:
            return "<factory>"

    _MISSING = _Missing()

    class _Field:
        """What stands of a field in the class."""

        __slots__ = ("annotation", "compare", "default", "default_factory", "init", "kw_only", "repr")

        def __init__(self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool) -> None:
            self.default, self.default_factory = default, default_factory
            self.init, self.repr, self.compare = init, repr, compare

    class _Late:
        """A member of a class, made when it is asked for, which then takes its place."""

        def __init__(self, make: Callable[[type], Any]) -> None:
            self._make = make

        def __set_name__(self, owner: type, name: str) -> None:
            self._place = owner, name

        def __get__(self, instance: Any, owner: type) -> Any:
            holder, name = self._place
            made = self._make(holder)
            setattr(holder, name, made)
            return made.__get__(instance, owner) if hasattr(made, "__get__") else made

    def field(
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> Any:
        """As `dataclasses.field`."""
        return _Field(default, default_factory, init, repr, compare)

    def dataclass(cls: type | None = None, /, **how: bool) -> Any:
        """`frozen`, `slots`, `kw_only`, `eq`: as `dataclasses` takes them."""
        return _made(cls) if cls is not None else lambda each: _made(each, **how)

    def replace(instance: Any, /, **changes: Any) -> Any:
        """As `dataclasses.replace`."""
        fields = type(instance).__dict__.get(_FIELDS)
        if fields is None:
            import dataclasses

            return dataclasses.replace(instance, **changes)
        kept = {name: getattr(instance, name) for name, each in fields.items() if each.init and name not in changes}
        return type(instance)(**kept, **changes)

    def _made(cls: type, *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True) -> type:
        namespace = dict(cls.__dict__)
        inherited, own = _inherited(cls), _own_fields(cls, kw_only)
        fields = {**inherited, **own}
        if slots:
            namespace["__slots__"] = tuple(name for name in own if name not in inherited)
        for name, each in own.items():
            if slots or each.default is _MISSING:
                namespace.pop(name, None)
            else:
                namespace[name] = each.default
        for name in ("__dict__", "__weakref__"):
            namespace.pop(name, None)
        made = {"__init__": _Late(lambda owner: _init(owner, frozen)), "__repr__": _repr, "__replace__": replace}
        if eq:
            made |= _compared(fields, frozen)
        if frozen:
            made |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:
            made |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in made.items():
            if name not in namespace or (name == "__hash__" and namespace[name] is None):
                namespace[name] = method
        namespace["__qualname__"], namespace[_FIELDS] = cls.__qualname__, fields
        namespace["__match_args__"] = tuple(name for name, each in fields.items() if each.init and not each.kw_only)
        namespace["__dataclass_fields__"] = _Late(lambda owner: _shadow(owner, frozen).__dataclass_fields__)
        namespace["__dataclass_params__"] = _Late(lambda owner: _shadow(owner, frozen).__dataclass_params__)
        return type(cls)(cls.__name__, cls.__bases__, namespace)

    def _own_fields(cls: type, kw_only: bool) -> dict[str, _Field]:
        """By the annotations, which are texts: `annotations` of `__future__` is in force."""
        found = {}
        for name, annotation in cls.__annotations__.items():
            if annotation == KW_ONLY:
                kw_only = True
            elif not annotation.startswith("ClassVar"):
                given = cls.__dict__.get(name, _MISSING)
                each = given if isinstance(given, _Field) else _Field(given, _MISSING, True, True, True)
                each.annotation, each.kw_only = annotation, kw_only
                found[name] = each
        return found

    def _inherited(cls: type) -> dict[str, _Field]:
        found = {}
        for base in reversed(cls.__mro__[1:]):
            if "__dataclass_fields__" in base.__dict__ and _FIELDS not in base.__dict__:
                raise TypeError(f"{cls.__name__}: its base {base.__name__} is made by `dataclasses`")
            found.update(base.__dict__.get(_FIELDS, {}))
        return found

    def _init(cls: type, frozen: bool) -> Any:
        """Written and compiled, because nothing else is as quick in the end."""
        fields: dict[str, _Field] = cls.__dict__[_FIELDS]
        taken = {name: each for name, each in fields.items() if each.init}
        by_place = [_parameter(name, each) for name, each in taken.items() if not each.kw_only]
        by_name = [_parameter(name, each) for name, each in taken.items() if each.kw_only]
        parameters = ", ".join(["_self", *by_place, *(["*", *by_name] if by_name else [])])
        lines = [f"  def __init__({parameters}):"]
        for name, each in fields.items():
            if value := _value(name, each):
                lines.append(f"   _set(_self, {name!r}, {value})" if frozen else f"   _self.{name} = {value}")
        lines.append("   _self.__post_init__()" if hasattr(cls, "__post_init__") else "   return")
        text = "\n".join(["def make(_fields, _set, _MISSING):", *lines, "  return __init__"])
        local: dict[str, Any] = {}
        exec(text, vars(sys.modules[cls.__module__]), local)  # of our own classes' names
        init = local["make"](fields, object.__setattr__, _MISSING)
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        init.__annotations__ = {**{name: each.annotation for name, each in taken.items()}, "return": None}
        return init

    def _parameter(name: str, each: _Field) -> str:
        if each.default_factory is not _MISSING:
            return f"{name}=_MISSING"
        return name if each.default is _MISSING else f"{name}=_fields[{name!r}].default"

    def _value(name: str, each: _Field) -> str:
        made = f"_fields[{name!r}].default_factory()"
        if not each.init:
            return made if each.default_factory is not _MISSING else f"_fields[{name!r}].default"
        return name if each.default_factory is _MISSING else f"{made} if {name} is _MISSING else {name}"

    def _repr(self: Any) -> str:
        fields = self._late_fields_.items()
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, each in fields if each.repr)
        return f"{type(self).__qualname__}({shown})"

    def _compared(fields: Mapping[str, _Field], frozen: bool) -> dict[str, Any]:
        names = [name for name, each in fields.items() if each.compare]
        values = attrgetter(*names) if names else lambda instance: ()

        def equal(self: Any, other: Any) -> bool:
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return {"__eq__": equal, "__hash__": (lambda self: hash(values(self))) if frozen else None}

    def _refuse(self: Any, name: str, *value: Any) -> None:
        if _FIELDS in type(self).__dict__ or name in self._late_fields_:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
        (object.__setattr__ if value else object.__delattr__)(self, name, *value)

    def _state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in self._late_fields_]

    def _set_state(self: Any, state: list[Any]) -> None:
        for name, value in zip(self._late_fields_, state, strict=True):
            object.__setattr__(self, name, value)

    def _shadow(cls: type, frozen: bool) -> type:
        """What `dataclasses` makes of the same fields."""
        import dataclasses

        def known(each: _Field) -> Any:
            given = {name: getattr(each, name) for name in ("init", "repr", "compare", "kw_only")}
            defaults = {"default": each.default, "default_factory": each.default_factory}
            return dataclasses.field(**given, **{name: it for name, it in defaults.items() if it is not _MISSING})

        fields = [(name, each.annotation, known(each)) for name, each in cls.__dict__[_FIELDS].items()]
        return dataclasses.make_dataclass(cls.__name__, fields, init=False, repr=False, eq=False, frozen=frozen)


def annotations_of(cls: type) -> dict[str, str]:
    """The fields of such a class, with their annotations as they are written."""
    return {name: each.annotation for name, each in cls.__dict__[_FIELDS].items()}
