"""What is installed as a hook: the interpreter that runs it, and the store that it works on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from toolmem.errors import RequestError
from toolmem.hosts.event_stores import OWN_STORE
from toolmem.hosts.host import HOSTS, Host, Scope, host_of
from toolmem.hosts.settings_files import HookPlace

# Parts of paths in which a tool keeps environments that it throws away: of `uvx` and `uv run`, of `pipx run`.
_PASSING = ("/uv/archive-v", "/uv/builds-v", "/uv/environments-v", "/pipx/.cache/", "/.cache/pipx/", "/.cache/uv/")


def known_host(name: str) -> Host:
    """Raises RequestError."""
    try:
        return host_of(name)
    except KeyError:
        raise RequestError(f"no agent is called {name!r}; there are {', '.join(HOSTS)}", field="agent") from None
    except ModuleNotFoundError as error:
        if error.name != HOSTS[name]:
            raise
        raise RequestError(f"{name} cannot be installed by this version of toolmem", field="agent") from None


def hook_place(agent: str, project: Path | None, user: bool, environment: Mapping[str, str]) -> HookPlace:
    """Raises RequestError for an agent that is not known, and for a project that is none."""
    if project is not None and user:
        raise RequestError("--project and --user exclude each other: give one", field="project")
    host, home = known_host(agent), Path.home()
    folder = Path(os.path.abspath(project or Path.cwd()))
    scope: Scope = "user" if user else "project"
    if not user and not folder.is_dir():
        raise RequestError(f"--project: {folder} is no folder", field="project")
    if not user and folder.resolve() == home.resolve():
        raise RequestError(f"{folder} is your home folder: give --user, or --project DIR", field="project")
    place = HookPlace(host, scope, folder, home, environment)
    if place.settings is None and not place.own_files(["python"]):
        raise RequestError(f"{host.title} has no hooks for {'a user' if user else 'a project'}", field="project")
    return place


def hook_command(agent: str, *, store: Path | None, on_error: str, config: Path | None) -> list[str]:
    """What the agent is to start. Raises RequestError where this interpreter would not stay."""
    more = [("--store", store and os.path.abspath(store)), ("--config", config and os.path.abspath(config))]
    options = [part for name, value in more if value for part in (name, str(value))]
    closed = ["--on-error", on_error] if on_error != "open" else []
    return [*interpreter_command(), "-m", "toolmem.hosts", agent, *options, *closed]


def interpreter_command() -> list[str]:
    """The interpreter and its flags, as others start it in whatever folder. Raises RequestError."""
    return [_interpreter(), *_flags()]


def passing_interpreter(path: str) -> str:
    """Why an interpreter may be gone soon; "" where nothing speaks for it."""
    plain = path.replace("\\", "/")
    for name in ("UV_CACHE_DIR", "PIPX_HOME"):
        base = os.environ.get(name, "").replace("\\", "/").rstrip("/")
        if base and plain.startswith(f"{base}/" if name == "UV_CACHE_DIR" else f"{base}/.cache/"):
            return "it belongs to an environment that is thrown away"
    if any(part in plain for part in _PASSING):
        return "it belongs to an environment that is thrown away"
    real = os.path.realpath(tempfile.gettempdir())
    if any(
        os.path.realpath(os.path.dirname(path)).startswith(f"{base}{os.sep}") for base in (real, "/tmp", "/var/tmp")
    ):
        return "it lies in a folder for temporary files"
    return ""


def store_of(place: HookPlace, store: Path | None) -> Path:
    """The store that the hooks write to."""
    if store is not None:
        return Path(os.path.abspath(store))
    return (place.home if place.scope == "user" else place.project) / OWN_STORE


def _interpreter() -> str:
    path = sys.executable
    if not path or not os.path.isabs(path) or not os.access(path, os.X_OK):
        raise RequestError("this toolmem has no interpreter that others can start: install it with pip")
    if passing_interpreter(path).endswith("thrown away"):
        raise RequestError(
            f"{path} belongs to an environment that is thrown away, and what starts it with it: install toolmem where "
            "it stays (`uv tool install .` or `pipx install .` in its checkout, or pip in an environment of yours), "
            "and run this from there",
            field="interpreter",
        )
    return path


def _flags() -> list[str]:
    """-P: no module is imported from the working directory. -E: nor from where PYTHONPATH leads, which may be there.

    Where toolmem itself is found through PYTHONPATH alone, -E is left out.
    """
    tried = subprocess.run(
        [sys.executable, "-P", "-E", "-c", "import toolmem.hosts"], capture_output=True, cwd=os.path.sep, check=False
    )
    return ["-P", "-E"] if tried.returncode == 0 else ["-P"]


def require_config(path: Path | None) -> None:
    """Raises ConfigError for a configuration that could not be used once a session has ended."""
    if path is not None:
        from toolmem.config.loading import read

        read([path], [])
