"""The languages of the pages: English, and Chinese where the browser prefers it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

from toolmem.pages.html import environment

if TYPE_CHECKING:
    from jinja2 import Environment


def environments() -> dict[str, Environment]:
    """The environment of templates for each language. Chinese texts stand by the English ones."""
    chinese = json.loads(files(__package__).joinpath("templates/zh.json").read_text("utf-8"))
    package = "toolmem.server.console"
    return {"en": environment(package), "zh": environment(package, chinese)}


def preferred_language(accepted: str) -> str:
    """`zh` where the header Accept-Language prefers any Chinese to English, else `en`."""
    preferred, highest = "en", 0.0
    for each in accepted.lower().split(","):
        tag, _, weight = each.replace(" ", "").partition(";q=")
        name = tag.partition("-")[0]
        try:
            quality = float(weight or 1)
        except ValueError:
            continue
        if name in ("en", "zh") and quality > highest:
            preferred, highest = name, quality
    return preferred
