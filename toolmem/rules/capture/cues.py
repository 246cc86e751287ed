"""The tables of words and forms: written in `nouns.yaml` and `shown_text.yaml`, read from `cues.json`.

That file is made from those two, because a hook has no time for YAML:

    python -m toolmem.rules.capture.cues    make `cues.json` again
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_TABLES = ("nouns", "shown_text")


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads((_FOLDER / "cues.json").read_text(encoding="utf-8"))
    return tables


def table(name: str) -> dict[str, Any]:
    """As its YAML file has it."""
    read: dict[str, Any] = _tables()[name]
    return read


def made() -> str:
    """What `cues.json` has to hold."""
    import yaml

    tables = {name: yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")) for name in _TABLES}
    return json.dumps(tables, ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    (_FOLDER / "cues.json").write_text(made(), encoding="utf-8")
