"""Which store a command works on where none was named: the one on which the hooks here act."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.cli.console import say

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp


def app_here(config: Sequence[Path] | None, overrides: Sequence[str] | None) -> ToolMemApp:
    """An app whose default store, where no configuration names it, is the one of the hooks for this folder.

    Where several bind here, the one that is meant is told. Without hooks it is that of the working directory.
    """
    from toolmem.app import ToolMemApp
    from toolmem.hosts.receipts import Receipts
    from toolmem.hosts.stores_here import stores_here

    app = ToolMemApp(config, overrides or ())
    receipts = Receipts(busy_timeout=1.0)
    try:
        found = stores_here(Path.cwd(), Path.home(), receipts.installs())
    except (OSError, RuntimeError):  # a user without a home
        return app
    finally:
        receipts.close()
    if found and app.services.places.find_at(str(found[0])) and len(found) > 1:
        others = ", ".join(map(str, found[1:]))
        say(f"of the store {found[0]}; here binds {others} as well (vector_store.default.params.path=FILE)")
    return app


def tell_missing(app: ToolMemApp) -> None:
    """Say so where the default store is not there, and what holds all the same."""
    from toolmem.hosts.gone_stores import kept_of, remedy_of, told_of

    path = app.services.places.file_of()
    if not path or path == ":memory:":
        return
    at = os.path.abspath(os.path.expanduser(path))
    if os.path.exists(at) and os.path.getsize(at):
        return
    kept = kept_of(at)
    say(f"there is no store {path}" if kept is None else f"{told_of(kept)}; {remedy_of(kept)}")
