"""The token by which a service on this machine tells its user from an agent that runs beside it.

A file that only the user reads. Clients on this machine send it by themselves.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from toolmem.config.own_folder import make_folder, state_folder, write_new

FILE = "service-token"
_LONGEST = 200  # characters


def token_file() -> Path:
    """Raises OSError where the user has no home folder."""
    return state_folder() / FILE


def read_service_token() -> str:
    """ "" where there is none that could be sent."""
    try:
        token = token_file().read_text(encoding="ascii")[: _LONGEST + 1].strip()
    except (OSError, ValueError):
        return ""
    return token if len(token) <= _LONGEST and all("!" <= each <= "~" for each in token) else ""


def make_service_token() -> str:
    """The token, made where there is none. Raises OSError where it cannot be written."""
    if token := read_service_token():
        return token
    file = token_file()
    make_folder(file.parent)
    unfinished = file.with_name(f"{file.name}.{os.urandom(4).hex()}.part")
    try:
        write_new(unfinished, os.urandom(24).hex().encode())
        if file.exists():  # damaged
            unfinished.replace(file)
        else:
            with suppress(FileExistsError):  # another process was quicker
                os.link(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return read_service_token()
