"""What `pip install toolmem` leaves out: the extras, what each of them brings, and how a missing one is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolmem.errors import ConfigError

if TYPE_CHECKING:
    from toolmem.config.settings import Settings

# The packages of each extra, by the names under which they are imported.
EXTRAS = {
    "dashscope": ("dashscope",),
    "elasticsearch": ("elasticsearch",),
    "research": ("pandas", "matplotlib", "jupytext", "nbclient", "nbconvert", "ipykernel"),
    "serve": ("fastapi", "fastapi_offline", "uvicorn", "mcp"),
}


def missing(extra: str) -> list[str]:
    """The packages of this extra that are not installed; nothing is imported to find out."""
    return [name for name in EXTRAS[extra] if not _installed(name)]


def lacks(what: str, extra: str) -> str:
    """A sentence where the extra is not installed, "" where it is: `what` needs the packages, and how to get them."""
    absent = missing(extra)
    if not absent:
        return ""
    return f"{what} needs the package{'s' * (len(absent) > 1)} {', '.join(absent)}: pip install 'toolmem[{extra}]'"


def need(what: str, extra: str) -> None:
    """Raises ConfigError where the extra is not installed."""
    if problem := lacks(what, extra):
        raise ConfigError(problem)


def absent_backends(settings: Settings, place: Callable[[tuple[str, ...]], str]) -> list[str]:
    """A line for each configured backend whose package is not installed. `place`: file and line of a value."""
    problems = []
    for path, backend in _backends(settings):
        if backend in EXTRAS and (problem := lacks(f"{'.'.join(path)}: {backend}", backend)):
            where = place(path)
            problems.append(f"{problem} [{where}]" if where else problem)
    return problems


def _backends(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    for section in ("llm", "embedding_model", "vector_store"):
        for name, entry in getattr(settings, section).items():
            yield (section, name, "backend"), entry.backend


def need_pandas() -> None:
    """Raises ConfigError where DataFrames cannot be made."""
    if not _installed("pandas"):
        raise ConfigError("a DataFrame needs the package pandas: pip install 'toolmem[research]'")


@cache
def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # an import hook forbids it
        return False
