"""The words of the data-driven writer: by what they say, an English and a Chinese text (`phrases.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

_TABLES = yaml.load(
    Path(__file__).with_name("phrases.yaml").read_text(encoding="utf-8"),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)


def _table(name: str) -> Mapping[str, tuple[str, str]]:
    return {key: (said["en"], said["zh"]) for key, said in _TABLES[name].items()}


PHRASES, CONDITIONS, SHAPES = _table("sentences"), _table("conditions"), _table("shapes")
