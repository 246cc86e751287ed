"""Find a Chromium on this machine, and open it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# It asks nobody for updates, and draws without a graphics card.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Missing(Exception):
    """There is no browser; the message says what is missing."""


@contextmanager
def open_chromium() -> Iterator[Any]:
    """A playwright browser: TOOLMEM_CHROMIUM, or `chromium` on the path. Raises Missing."""
    found = os.environ.get("TOOLMEM_CHROMIUM") or shutil.which("chromium")
    if not found:
        raise Missing("no Chromium: TOOLMEM_CHROMIUM is not set, and `chromium` is not on the path")
    try:
        import axe_playwright_python  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Missing(f'no browser: {error}; pip install -e ".[dev]" brings it') from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
