"""Checks a configuration before it is served: every problem at once, and nothing opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.config.loading import read
from toolmem.config.problems import added_to
from toolmem.errors import ConfigError
from toolmem.server.http.access import AccessControl

RESERVED = ("rpc", "health", "docs")  # addresses of the HTTP service that no flow may have


def prepare(files: Sequence[str | Path], overrides: Sequence[str]) -> tuple[ToolMemApp, AccessControl]:
    """Check a configuration: the app that will be served, and its access control. Opens nothing.

    Raises ConfigError with every problem of the configuration, that of serving it and that of its models.
    """
    problems: list[str] = []
    app = access = None
    with added_to(problems):
        app = ToolMemApp(files, overrides)
    settings = read(files, overrides).settings if app is None else app.settings
    with added_to(problems):
        access = AccessControl.of(settings, "http")
    if app is not None:
        taken = [name for name in app.flows if name in RESERVED]
        problems += [f"flow.{name}: the HTTP service has this address for itself" for name in taken]
        for name in app.flows:
            with added_to(problems):  # a missing key is told now, not to the first client
                app.check_models(name)
    if problems or app is None or access is None:
        raise ConfigError(list(dict.fromkeys(problems)))
    return app, access
