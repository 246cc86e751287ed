"""Checks a configuration before it is served: every problem at once, and nothing opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.config.loading import read
from toolmem.errors import ConfigError
from toolmem.server.http.access import AccessControl

RESERVED = ("rpc", "health", "docs")  # addresses of the HTTP service that no flow may have


def prepare(files: Sequence[str | Path], overrides: Sequence[str]) -> tuple[ToolMemApp, AccessControl]:
    """The app that will be served, and who may come in. Opens nothing.

    Raises ConfigError with every problem of the configuration, that of serving it and that of its models.
    """
    problems: list[str] = []
    app = access = None
    try:
        app = ToolMemApp(files, overrides)
        settings = app.settings
    except ConfigError as error:
        problems += error.problems
        try:
            settings = read(files, overrides).settings
        except ConfigError:  # it cannot be read at all, which is told already
            raise error from None
    try:
        access = AccessControl.of(settings, "http")
    except ConfigError as error:
        problems += error.problems
    if app is not None:
        problems += _reserved_names(app)
        problems += _unaskable_models(app)
    if problems or app is None or access is None:
        raise ConfigError(list(dict.fromkeys(problems)))
    return app, access


def _reserved_names(app: ToolMemApp) -> list[str]:
    return [f"flow.{name}: the HTTP service has this address for itself" for name in app.flows if name in RESERVED]


def _unaskable_models(app: ToolMemApp) -> list[str]:
    """Models that no request could ask: a missing key is told now, not to the first client."""
    problems: list[str] = []
    for flow in app.flows:
        try:
            app.check_models(flow)
        except ConfigError as error:
            problems += error.problems
    return problems
