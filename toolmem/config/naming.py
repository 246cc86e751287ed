"""Which file a configuration is meant by: a path, a name without `.yaml`, or `default` for toolmem's own."""

from __future__ import annotations

from pathlib import Path

from toolmem.errors import ConfigError

PACKAGED = "default"  # as ReMe's `config=default`: the configuration of the package
_ENDINGS = (".yaml", ".yml")


def config_file(given: str | Path) -> Path | None:
    """The file; None where the packaged configuration is meant, over which every file goes anyhow.

    Raises ConfigError that names what was looked for.
    """
    path = Path(given)
    if str(given) == PACKAGED:  # whatever lies in the working directory under this name
        return None
    if path.exists():
        return path
    tried = [] if path.suffix in _ENDINGS else [path.with_name(path.name + ending) for ending in _ENDINGS]
    for each in tried:
        if each.is_file():
            return each
    also = f", nor {' or '.join(str(each) for each in tried)}; config={PACKAGED} is toolmem's own" if tried else ""
    raise ConfigError(f"{path}: no such file{also}")
